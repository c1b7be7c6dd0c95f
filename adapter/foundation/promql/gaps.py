"""Finds the selectors of a query by its tokens.

The result is correct for every query in the common form of PromQL's grammar, and a guess for others. Callers that
insert text at these places must therefore prove that the edited query is right (`narrowing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from adapter.foundation.promql.tokens import PromQLToken, TokenKind, closing_bracket

_BEFORE_LISTS: Final = frozenset(
    {"by", "without", "on", "ignoring", "group_left", "group_right", "fill", "fill_left", "fill_right"}
)
_SET_OPERATORS: Final = frozenset({"and", "or", "unless", "atan2"})
_NUMBERS: Final = frozenset({"inf", "nan"})
_OPERATORS: Final = frozenset("+-*/%^=!<>~,(")
_COMPARISONS: Final = frozenset("=<>")
_END: Final = PromQLToken(TokenKind.BLANK, "", 0, 0)


class GapKind(Enum):
    """The kind of text at a place where matchers belong."""

    NAME = "name"
    """The name of a metric without braces."""
    BRACES = "braces"
    """An opening brace, and matchers after it."""
    EMPTY_BRACES = "empty braces"
    ALTERNATIVE = "alternative"
    """The word `or` between the matchers of a selector, as in VictoriaMetrics."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A place in a query where matchers can be inserted."""

    after: int
    """Index of the token after which the place is."""
    kind: GapKind


def gaps_in(tokens: Sequence[PromQLToken]) -> Iterator[Gap]:
    """Yield the places where matchers can be inserted, in the order of the query."""
    number, expects_operand = 0, True
    while number < len(tokens):
        token = tokens[number]
        if token.is_sign("{"):
            end = _end(tokens, number)
            yield from _in_braces(tokens, number, end)
            number, expects_operand = end, False
        elif token.is_sign("["):
            number, expects_operand = _end(tokens, number), False
        elif token.is_sign("@"):
            number, expects_operand = _last_of_time(tokens, number), False
        elif token.kind is not TokenKind.WORD:
            expects_operand = token.kind is TokenKind.SIGN and token.text in _OPERATORS
        elif _begins_list(tokens, number):
            number = _end(tokens, number + 1)
        elif not expects_operand:
            number, expects_operand = _after_operand(tokens, number)
        elif not _is_modifier(tokens, number) and not _at(tokens, number + 1).is_sign("("):
            expects_operand = False
            if _is_bare_name(tokens, number):
                yield Gap(number, GapKind.NAME)
        number += 1


def _begins_list(tokens: Sequence[PromQLToken], number: int) -> bool:
    """Return whether a list in parentheses follows the word: labels, or the value of `fill`."""
    return tokens[number].text.lower() in _BEFORE_LISTS and _at(tokens, number + 1).is_sign("(")


def _is_bare_name(tokens: Sequence[PromQLToken], number: int) -> bool:
    """Return whether the word, which is in the place of an operand, is the name of a metric without braces."""
    word = tokens[number].text
    return not (_at(tokens, number + 1).is_sign("{") or word[0].isdigit() or word.lower() in _NUMBERS)


def _after_operand(tokens: Sequence[PromQLToken], number: int) -> tuple[int, bool]:
    """Return the index of the last token of the word after an operand, and whether another operand must follow."""
    word = tokens[number].text.lower()
    if word == "offset":
        return _last_of_time(tokens, number), False
    return number, word in _SET_OPERATORS


def _is_modifier(tokens: Sequence[PromQLToken], number: int) -> bool:
    """Return whether the word, which is in the place of an operand, modifies an operator or an aggregation."""
    word, following = tokens[number].text.lower(), _at(tokens, number + 1)
    if word == "bool":
        return number > 0 and any(map(tokens[number - 1].is_sign, _COMPARISONS))
    if word in {"group_left", "group_right"}:
        return True
    # An aggregation with its labels in front, as in `sum by (pod) (…)`.
    return following.kind is TokenKind.WORD and following.text.lower() in {"by", "without"}


def _last_of_time(tokens: Sequence[PromQLToken], number: int) -> int:
    """Return the index of the last token of the time after `@` or `offset`."""
    number += 1
    if _at(tokens, number).is_sign("-") or _at(tokens, number).is_sign("+"):
        number += 1
    return _end(tokens, number + 1) if _at(tokens, number + 1).is_sign("(") else number


def _in_braces(tokens: Sequence[PromQLToken], opening: int, end: int) -> Iterator[Gap]:
    yield Gap(opening, GapKind.EMPTY_BRACES if end == opening + 1 else GapKind.BRACES)
    for number in range(opening + 1, end):
        token, following = tokens[number], _at(tokens, number + 1)
        is_label = following.is_sign("=") or following.is_sign("!")
        if token.kind is TokenKind.WORD and token.text.lower() == "or" and not is_label:
            yield Gap(number, GapKind.ALTERNATIVE)


def _end(tokens: Sequence[PromQLToken], opening: int) -> int:
    found = closing_bracket(tokens, opening)
    return len(tokens) if found is None else found


def _at(tokens: Sequence[PromQLToken], number: int) -> PromQLToken:
    return tokens[number] if number < len(tokens) else _END
