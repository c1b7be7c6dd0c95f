"""The tokens of PromQL, which are used to find the argument of an aggregation and the depth of a query.

The tree of a query has no positions, and a query is sent as its author wrote it, so edits use tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple

_TOKEN = re.compile(
    r"""(?P<blank> \s+ | \#[^\n\r]*)
      | (?P<text> "(?:[^"\\\n]|\\.)*+" | '(?:[^'\\\n]|\\.)*+' | `[^`]*+`)
      | (?P<unclosed> "(?:[^"\\\n]|\\.)*+ | '(?:[^'\\\n]|\\.)*+ | `[^`]*+)
      | (?P<word> [A-Za-z_:][A-Za-z0-9_:.]* | [0-9][A-Za-z0-9_.]*)
      | (?P<sign> .)""",
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_NESTING_SIGNS = frozenset("([+-*/%^=!<>")
_OPERATOR_WORDS = frozenset({"and", "or", "unless", "atan2"})


class TokenKind(Enum):
    """The kinds of tokens."""

    BLANK = "blank"
    """White space or a comment."""
    TEXT = "text"
    """A string, including its quotes."""
    WORD = "word"
    """A name, a keyword, a number or a duration."""
    SIGN = "sign"
    """One character of punctuation or of an operator."""


_KINDS: Final = {kind.value: kind for kind in TokenKind}


class PromQLToken(NamedTuple):
    """One token of a query. It is a tuple because a file of rules can have millions of tokens."""

    kind: TokenKind
    text: str
    start: int
    """Position of its first character, from 0."""
    end: int

    def is_sign(self, sign: str) -> bool:
        """Return whether the token is this sign, and not a string or a comment that contains it."""
        return self.kind is TokenKind.SIGN and self.text == sign


def tokens_of(query: str) -> list[PromQLToken]:
    """Return the tokens of a query without white space and comments. Never fails: refusing is left to the parser."""
    return [token for token in _all_tokens(query) if token.kind is not TokenKind.BLANK]


def closing_bracket(tokens: Sequence[PromQLToken], opening: int) -> int | None:
    """Return the position of the bracket that closes the one at position `opening`; None if there is none."""
    open_brackets: list[str] = []
    for position in range(opening, len(tokens)):
        token = tokens[position]
        if token.kind is not TokenKind.SIGN:
            continue
        if token.text in _CLOSING:
            open_brackets.append(_CLOSING[token.text])
        elif open_brackets and token.text == open_brackets[-1]:
            open_brackets.pop()
            if not open_brackets:
                return position
    return None


def nests_deeper_than(levels: int, query: str) -> bool:
    """Judge by brackets and by operators outside matchers whether the query's tree may be deeper than `levels`."""
    # Counting all of them, even those in strings, suffices for nearly all queries and is much faster.
    if sum(map(query.lower().count, _NESTING_SIGNS | _OPERATOR_WORDS)) <= levels:
        return False
    return _nesting_depth(query) > levels


def _nesting_depth(query: str) -> int:
    depth = 0
    inside_matchers = False
    for token in tokens_of(query):
        if token.is_sign("{"):
            inside_matchers = True
        elif token.is_sign("}"):
            inside_matchers = False
        elif not inside_matchers and _nests(token):
            depth += 1
    return depth


def _nests(token: PromQLToken) -> bool:
    if token.kind is TokenKind.WORD:
        return token.text.lower() in _OPERATOR_WORDS
    return token.kind is TokenKind.SIGN and token.text in _NESTING_SIGNS


def _all_tokens(query: str) -> Iterator[PromQLToken]:
    unclosed: dict[str, int] = {}
    at = 0
    while (match := _TOKEN.match(query, at)) is not None:
        start, at = match.span()
        kind = match.lastgroup
        if kind == "unclosed":
            # An unclosed quote is a sign. The escaped quotes of its kind that follow it are unclosed, too: searching
            # again from each of them would take time that is quadratic in the length.
            unclosed[query[start]] = at
            kind, at = "sign", start + 1
        yield PromQLToken(_KINDS[kind or "sign"], query[start:at], start, at)
        while unclosed.get(query[at : at + 1], 0) > at:
            yield PromQLToken(TokenKind.SIGN, query[at], at, at + 1)
            at += 1
