"""Turns a template's text into tokens: the words inside `<< >>`, and the text between them.

The rules are those of Go's `text/template/parse/lex.go`: what ends a word, where trim markers (`<<- ` and ` ->>`)
remove white space, and that an action with a comment can contain nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from adapter.metrics.rulebook.gotemplate.errors import TemplateError

LEFT, RIGHT = "<<", ">>"
_SPACES = " \t\r\n"


class TemplateTokenKind(Enum):
    """The kinds of tokens."""

    TEXT = auto()
    OPEN = auto()
    CLOSE = auto()
    SPACE = auto()
    WORD = auto()
    """A function or a keyword."""
    FIELD = auto()
    """`.Name`, including the dot."""
    DOT = auto()
    VARIABLE = auto()
    """`$name`, or `$` alone."""
    STRING = auto()
    """A string including its quotes, of either kind."""
    CHARACTER = auto()
    NUMBER = auto()
    PIPE = auto()
    DECLARE = auto()
    ASSIGN = auto()
    COMMA = auto()
    LEFT_PAREN = auto()
    RIGHT_PAREN = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class TemplateToken:
    """One piece of a template."""

    kind: TemplateTokenKind
    text: str
    line: int


_PATTERNS = (
    (TemplateTokenKind.SPACE, r"[ \t\r\n]+"),
    (TemplateTokenKind.STRING, r'"(?:[^"\\\n]|\\[^\n])*"|`[^`]*`'),
    (TemplateTokenKind.CHARACTER, r"'(?:[^'\\\n]|\\[^\n])*'"),
    (TemplateTokenKind.NUMBER, r"[+-]?\.?[0-9](?:[0-9a-zA-Z_.]|(?<=[eEpP])[+-])*"),
    (TemplateTokenKind.FIELD, r"\.\w+"),
    (TemplateTokenKind.DOT, r"\."),
    (TemplateTokenKind.VARIABLE, r"\$\w*"),
    (TemplateTokenKind.WORD, r"\w+"),
    (TemplateTokenKind.PIPE, r"\|"),
    (TemplateTokenKind.DECLARE, r":="),
    (TemplateTokenKind.ASSIGN, r"="),
    (TemplateTokenKind.COMMA, r","),
    (TemplateTokenKind.LEFT_PAREN, r"\("),
    (TemplateTokenKind.RIGHT_PAREN, r"\)"),
)
_INSIDE = re.compile("|".join(f"(?P<{kind.name}>{pattern})" for kind, pattern in _PATTERNS))
_MUST_END = frozenset(
    {
        TemplateTokenKind.WORD,
        TemplateTokenKind.FIELD,
        TemplateTokenKind.DOT,
        TemplateTokenKind.VARIABLE,
        TemplateTokenKind.NUMBER,
    }
)
_TERMINATORS = frozenset(_SPACES + ".,|:()")


def tokens(text: str) -> Iterator[TemplateToken]:
    """Yield the tokens of a template, END last; raises TemplateError."""
    return _Lexer(text).tokens()


def _foreign(word: str) -> str | None:
    r"""Return the first character that `\w` matches but Go does not accept in a word, such as a superscript."""
    taken = (character for character in word if character.isalnum())
    return next((character for character in taken if not (character.isalpha() or character.isdecimal())), None)


class _Lexer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._counted = 0
        """Position up to which line ends have been counted."""
        self._trimming = False
        """Whether the last action ended in ` ->>`."""

    def tokens(self) -> Iterator[TemplateToken]:
        while (start := self._text.find(LEFT, self._at)) >= 0:
            trims = self._is_trim_marker(start + len(LEFT))
            yield from self._plain(start, trim_right=trims)
            self._at += len(LEFT) + (2 if trims else 0)
            if self._text.startswith("/*", self._at):
                self._skip_comment()
                continue
            yield self._token(TemplateTokenKind.OPEN, LEFT)
            yield from self._action()
            yield self._token(TemplateTokenKind.CLOSE, RIGHT)
        yield from self._plain(len(self._text), trim_right=False)
        yield self._token(TemplateTokenKind.END, "")

    def _plain(self, end: int, *, trim_right: bool) -> Iterator[TemplateToken]:
        piece = self._text[self._at : end]
        piece = piece.lstrip(_SPACES) if self._trimming else piece
        piece = piece.rstrip(_SPACES) if trim_right else piece
        if piece:
            yield self._token(TemplateTokenKind.TEXT, piece)
        self._at = end

    def _is_trim_marker(self, at: int) -> bool:
        return self._text.startswith("-", at) and self._text[at + 1 : at + 2] in tuple(_SPACES)

    def _skip_comment(self) -> None:
        end = self._text.find("*/", self._at)
        if end < 0:
            raise self._error("the comment is not closed by */")
        self._at = end + 2
        if not self._close_action():
            raise self._error(
                "an action with a comment can contain nothing else: write << right before /* and >> right after */"
            )

    def _close_action(self) -> bool:
        """Advance past `>>` or ` ->>`, if that is next; return whether it was."""
        self._trimming = self._text[self._at : self._at + 1] in tuple(_SPACES) and self._text.startswith(
            f"-{RIGHT}", self._at + 1
        )
        if not self._trimming and not self._text.startswith(RIGHT, self._at):
            return False
        self._at += len(RIGHT) + (2 if self._trimming else 0)
        return True

    def _action(self) -> Iterator[TemplateToken]:
        while not self._close_action():
            found = _INSIDE.match(self._text, self._at)
            if found is None:
                raise self._unreadable()
            kind, end = TemplateTokenKind[found.lastgroup or ""], found.end()
            if kind is TemplateTokenKind.SPACE and self._text.startswith(f"-{RIGHT}", end):
                # The last space belongs to the trim marker.
                end -= 1
            if (foreign := _foreign(found[0])) is not None and kind in _MUST_END:
                raise self._error(f"unexpected character {foreign!r} in {found[0]!r}")
            if kind in _MUST_END and not self._ends_word(end):
                raise self._error(f"unexpected character {self._text[end]!r} after {found[0]!r}")
            if end > self._at:
                yield self._token(kind, self._text[self._at : end])
            self._at = end

    def _ends_word(self, end: int) -> bool:
        following = self._text[end : end + 1]
        return not following or following in _TERMINATORS or self._text.startswith(RIGHT, end)

    def _unreadable(self) -> TemplateError:
        character = self._text[self._at : self._at + 1]
        if not character:
            return self._error(f"an action is not closed by {RIGHT}")
        if character in "\"`'":
            return self._error("a string is not closed by its quote")
        return self._error(f"unexpected character {character!r} in an action")

    def _token(self, kind: TemplateTokenKind, text: str) -> TemplateToken:
        return TemplateToken(kind, text, self._line_here())

    def _line_here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = max(self._at, self._counted)
        return self._line

    def _error(self, message: str) -> TemplateError:
        return TemplateError(message, self._line_here())
