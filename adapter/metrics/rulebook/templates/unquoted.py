"""Determines which values of a request are harmless outside quotes in a query.

A number or a duration selects nothing. The name of a label, where only labels are possible, refers to labels of series
that the query selects anyway. Any other word could select other series.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from adapter.foundation.promql.quoting import is_label_name

_TOKEN: Final = re.compile(r'"+|[A-Za-z_:][A-Za-z0-9_:.]*|[0-9][A-Za-z0-9_.]*|[^ \t\r\n]', re.ASCII)
"""Matches a string, a word, a number or duration, or a sign."""
_NUMBER: Final = re.compile(
    r"0[xX][0-9a-fA-F]+|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|(?:[0-9]+(?:ms|[smhdwy]))+", re.ASCII
)
_LABEL_LISTS: Final = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})


class Bare(NamedTuple):
    """A value outside quotes."""

    start: int
    """Position of the first character in the query."""
    end: int
    line: int
    """The line of the template that the value comes from."""


class _Token(NamedTuple):
    text: str
    start: int
    end: int


def misplaced_value(outline: str, values: Sequence[Bare]) -> Bare | None:
    """Return the first value that is neither a number, nor a duration, nor the name of a label at a place for labels.

    `outline` is the query with a `"` for each character of its strings, and a blank for each of its comments.
    """
    tokens = list(_tokens(outline))
    labels = frozenset(_label_names(tokens))
    starts, ends = [token.start for token in tokens], [token.end for token in tokens]
    for value in _join_adjacent(values):
        touched = tokens[bisect_right(ends, value.start) : bisect_left(starts, value.end)]
        is_harmless = _is_number(outline, value, touched) if labels.isdisjoint(touched) else _is_label(value, touched)
        if not is_harmless:
            return value
    return None


def _is_number(outline: str, value: Bare, tokens: Sequence[_Token]) -> bool:
    """Return whether a value is a number or a duration, possibly together with the text of the template around it."""
    if not tokens or value.start < tokens[0].start or tokens[-1].end < value.end:
        return False
    if len(tokens) == 1:
        return _NUMBER.fullmatch(tokens[0].text) is not None
    # `1e-3` is three tokens.
    whole = (tokens[0].start, tokens[-1].end) == (value.start, value.end)
    return whole and _NUMBER.fullmatch(outline, value.start, value.end) is not None


def _is_label(value: Bare, tokens: Sequence[_Token]) -> bool:
    """Return whether a value at a place for labels is the whole name of one."""
    alone = len(tokens) == 1 and (tokens[0].start, tokens[0].end) == (value.start, value.end)
    return alone and is_label_name(tokens[0].text)


def _join_adjacent(values: Sequence[Bare]) -> list[Bare]:
    """Return the values; adjacent ones are joined."""
    found: list[Bare] = []
    for value in values:
        touches = bool(found) and found[-1].end == value.start
        found.append(Bare(found.pop().start, value.end, value.line) if touches else value)
    return found


def _tokens(outline: str) -> Iterator[_Token]:
    """Yield the query's tokens; the colon of `[1h:5m]` is one, while a colon outside brackets is part of a name."""
    brackets = 0
    for match in _TOKEN.finditer(outline):
        text, start, end = match[0], match.start(), match.end()
        brackets += (text == "[") - (text == "]")
        if brackets and text.startswith(":") and len(text) > 1:
            yield _Token(":", start, start + 1)
            yield _Token(text[1:], start + 1, end)
        else:
            yield _Token(text, start, end)


def _label_names(tokens: Sequence[_Token]) -> Iterator[_Token]:
    """Yield the tokens that are names of labels, by the tokens around them: `by (a, b)`, `{a="…"}`."""
    opened: list[str] = []
    for position, token in enumerate(tokens):
        before = tokens[position - 1].text if position else ""
        behind = tokens[position + 1].text if position + 1 < len(tokens) else ""
        if token.text in ("(", "{", "["):
            opened.append("by" if token.text == "(" and before.lower() in _LABEL_LISTS else token.text)
        elif token.text in (")", "}", "]"):
            del opened[-1:]
        elif opened:
            listed = opened[-1] == "by" and before in ("(", ",") and behind in (",", ")")
            if listed or (opened[-1] == "{" and behind in ("=", "!")):
                yield token
