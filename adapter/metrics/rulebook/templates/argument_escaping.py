"""Escapes the values of a request where they appear in a query, or refuses them.

A template can put a value anywhere: between three kinds of quotes, into a comment, or outside quotes. Every part of its
output that came from a request is marked, so its place is known from the text that the author wrote around it, and no
value can leave its place:

* between `"` or `'` it is escaped like a PromQL string, and reads back unchanged;
* between back quotes, where nothing can be escaped, it is kept unless it contains a back quote or a backslash;
* in a comment it is kept unless it contains a line end;
* outside quotes it must be a number or a duration, or, where only labels are allowed, the name of a label. Any other
  word could be the name of another client's metric.

Values of Kubernetes labels, names of namespaces and nearly all names of objects need no escaping, so the query is the
one that prometheus-adapter sends.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from adapter.foundation.promql.quoting import go_escaped
from adapter.metrics.rulebook.templates.unquoted import Bare, misplaced_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.metrics.rulebook.gotemplate import OutputPiece

_OPENING: Final = re.compile(r"[\"'`#]")
_ENDINGS: Final = {
    '"': re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]|\\.)*", re.DOTALL),
    "`": re.compile(r"[^`]*"),
    "#": re.compile(r"[^\r\n]*"),
}
"""The rest of a string or comment, by the character that opens it."""
_LINE_ENDS: Final = re.compile(r"[\r\n]")
_NOT_RAW: Final = re.compile("[`\\\\\ud800-\udfff]")
"""Characters that are refused between back quotes. There, Prometheus takes a backslash as it is; in VictoriaMetrics, it
escapes."""


class PlacingError(ValueError):
    """A value is not allowed where the template puts it. The message says why; `line` is the line of the template."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def escaped_query(pieces: Iterable[OutputPiece]) -> str:
    """Return the query that a template's output makes, with its values escaped. Raises PlacingError."""
    placing = _Placing()
    texts: list[str] = []
    for piece in pieces:
        if piece.tainted:
            placing.take_text("".join(texts))
            placing.take_value(piece)
            texts.clear()
        else:
            texts.append(piece.text)
    placing.take_text("".join(texts))
    return placing.query()


class _Placing:
    def __init__(self) -> None:
        self._query: list[str] = []
        self._outline: list[str] = []
        """The query, in which all characters of strings and comments are replaced."""
        self._length = 0
        self._inside = ""
        """Character that opened the current string or comment; empty outside both."""
        self._escaping = False
        """Whether the string so far ends in a backslash that escapes the next character."""
        self._bare: list[Bare] = []

    def query(self) -> str:
        query = "".join(self._query)
        wrong = misplaced_value("".join(self._outline), self._bare) if self._bare else None
        if wrong is not None:
            where = (
                "outside quotes, where only numbers, durations and, in lists and before =, names of labels are allowed"
            )
            value = query[wrong.start : wrong.end]
            raise _placing_error(value, wrong.line, where, "put quotes around it, or request a number")
        return query

    def take_text(self, text: str) -> None:
        """Add text of the template's author."""
        at = 0
        while at < len(text):
            inside = self._inside
            end = self._next_inside(text, at) if inside else self._next_outside(text, at)
            self._append(text[at:end], inside)
            at = end

    def take_value(self, piece: OutputPiece) -> None:
        """Add a value of a request."""
        if not self._inside:
            self._bare.append(Bare(self._length, self._length + len(piece.text), piece.line))
            self._append(piece.text, "")
        elif self._inside in "\"'":
            if self._escaping:
                raise _placing_error(piece.text, piece.line, "right after a backslash", "remove the backslash")
            self._append(go_escaped(piece.text, self._inside), self._inside)
        else:
            self._append(_as_it_is(piece, self._inside), self._inside)

    def _next_outside(self, text: str, at: int) -> int:
        """Return the position of the next string or comment, or the position after its opening if it is here."""
        opening = _OPENING.search(text, at)
        if opening is None:
            return len(text)
        if opening.start() > at:
            return opening.start()
        self._inside = opening[0]
        return opening.end()

    def _next_inside(self, text: str, at: int) -> int:
        if self._escaping:
            self._escaping = False
            return at + 1
        rest = _ENDINGS[self._inside].match(text, at)
        end = rest.end() if rest else at
        if text[end : end + 1] == "\\":
            self._escaping = True
        elif end < len(text):
            self._inside = ""
        return end + 1

    def _append(self, text: str, inside: str) -> None:
        # The quotes of a string belong to it.
        opened = inside or self._inside
        self._query.append(text)
        self._outline.append((" " if opened == "#" else '"') * len(text) if opened else text)
        self._length += len(text)


def _as_it_is(piece: OutputPiece, opening: str) -> str:
    """Return a value unchanged if it is allowed where nothing can be escaped. Raises PlacingError."""
    if opening == "#" and _LINE_ENDS.search(piece.text):
        raise _placing_error(piece.text, piece.line, "in a comment, which it would end", "remove it from the comment")
    if opening == "`" and _NOT_RAW.search(piece.text):
        where = "between back quotes, where nothing can be escaped"
        raise _placing_error(piece.text, piece.line, where, 'use " for the quotes')
    return piece.text


def _placing_error(value: str, line: int, where: str, fix: str) -> PlacingError:
    return PlacingError(f"the value {value!r} is not allowed {where} (line {line} of the query): {fix}", line)
