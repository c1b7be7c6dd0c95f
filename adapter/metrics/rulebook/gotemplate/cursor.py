"""The position of the parser in the tokens of a template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from adapter.metrics.rulebook.gotemplate.errors import TemplateError
from adapter.metrics.rulebook.gotemplate.lexer import TemplateToken, TemplateTokenKind, tokens

_DEEPEST: Final = 50
"""Limit on nested parentheses and control words; a template for a query has about three levels."""


class Cursor:
    """Returns the tokens of a template one by one, and END repeatedly after the last."""

    def __init__(self, text: str) -> None:
        self._tokens = list(tokens(text))
        self._at = 0
        self._depth = 0

    def take(self) -> TemplateToken:
        """Return the next token and advance past it."""
        token = self._tokens[self._at]
        self._at += token.kind is not TemplateTokenKind.END
        return token

    def peek(self) -> TemplateToken:
        """Return the next token."""
        return self._tokens[self._at]

    def peek_behind_space(self) -> TemplateToken:
        """Return the next token that is not white space, without advancing past it."""
        while self.peek().kind is TemplateTokenKind.SPACE:
            self._at += 1
        return self.peek()

    def upcoming_tokens(self) -> Iterator[TemplateToken]:
        """Yield the following tokens that are not white space, without advancing."""
        ahead = map(self._tokens.__getitem__, range(self._at, len(self._tokens)))
        return (token for token in ahead if token.kind is not TemplateTokenKind.SPACE)

    def expect_close(self, word: TemplateToken) -> None:
        """Advance past the end of an action. Raises TemplateError if another token precedes it."""
        token = self.peek_behind_space()
        if token.kind is not TemplateTokenKind.CLOSE:
            raise unexpected_token_error(token, f"`{word.text}`")
        self.take()

    def enter(self, token: TemplateToken) -> None:
        """Enter a level of nesting. Raises TemplateError if there are too many."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise TemplateError(f"more than {_DEEPEST} levels of parentheses and control words", token.line)

    def leave(self) -> None:
        """Leave a level of nesting."""
        self._depth -= 1


def unexpected_token_error(token: TemplateToken, where: str) -> TemplateError:
    """Return the error for an unexpected token."""
    if token.kind is TemplateTokenKind.CLOSE:
        return TemplateError(f"{where} lacks a value", token.line)
    return TemplateError(f"unexpected {token.text!r} in {where}", token.line)
