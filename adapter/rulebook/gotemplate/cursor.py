"""The place in a template's tokens where its parser stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.rulebook.gotemplate.errors import TemplateError
from adapter.rulebook.gotemplate.lexer import TemplateToken, TemplateTokenKind, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEEPEST: Final = 50
"""Levels of parentheses and control words; a template for a query has about three."""


class Cursor:
    """Hands out the tokens of a template one by one; the last, END, for ever."""

    def __init__(self, text: str) -> None:
        self._tokens = list(tokens(text))
        self._at = 0
        self._depth = 0

    def take(self) -> TemplateToken:
        """Return the next token and step behind it."""
        token = self._tokens[self._at]
        self._at += token.kind is not TemplateTokenKind.END
        return token

    def peek(self) -> TemplateToken:
        """Return the next token."""
        return self._tokens[self._at]

    def peek_behind_space(self) -> TemplateToken:
        """Return the next token that is no white space, and step in front of it."""
        while self.peek().kind is TemplateTokenKind.SPACE:
            self._at += 1
        return self.peek()

    def upcoming(self) -> Iterator[TemplateToken]:
        """Yield the tokens to come that are no white space, without a step."""
        ahead = map(self._tokens.__getitem__, range(self._at, len(self._tokens)))
        return (token for token in ahead if token.kind is not TemplateTokenKind.SPACE)

    def expect_close(self, word: TemplateToken) -> None:
        """Step behind the end of an action; raises TemplateError where more stands in it."""
        token = self.peek_behind_space()
        if token.kind is not TemplateTokenKind.CLOSE:
            raise unexpected(token, f"`{word.text}`")
        self.take()

    def enter(self, token: TemplateToken) -> None:
        """Count one level more; raises TemplateError where they are too many."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise TemplateError(f"more than {_DEEPEST} levels of parentheses and control words", token.line)

    def leave(self) -> None:
        """Count one level less."""
        self._depth -= 1


def unexpected(token: TemplateToken, where: str) -> TemplateError:
    """Return the error for an unexpected token."""
    if token.kind is TemplateTokenKind.CLOSE:
        return TemplateError(f"{where} lacks a value", token.line)
    return TemplateError(f"unexpected {token.text!r} in {where}", token.line)
