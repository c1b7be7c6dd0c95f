"""Determines how far back a query looks, by its tree, or by its tokens if it cannot be parsed."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.durations import LONGEST_SECONDS
from adapter.foundation.promql.tokens import TokenKind, closing_bracket, tokens_of
from adapter.foundation.promql.tree import Node, SelectorNode, Wrapper, operands_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapter.foundation.promql.tokens import PromQLToken

LOOK_BACK_SECONDS = 300.0
"""Prometheus's default `--query.lookback-delta`: a series keeps the value of its last sample for this long."""

_RANGE = re.compile(r"\[([0-9.]+)")
_OFFSET = re.compile(r" offset ([0-9.]+)")

_DURATION: Final = re.compile(r"(?:[0-9]+(?:ms|[smhdwy]))+")
_PART: Final = re.compile(r"([0-9]+)(ms|[smhdwy])")
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:e[0-9]+)?", re.IGNORECASE)
_HEXADECIMAL: Final = re.compile(r"0x[0-9a-f]+", re.IGNORECASE)
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}


def oldest_sample(node: Node) -> float:
    """Return the age of the oldest sample that a query may use, in seconds, with the default look-back."""
    return _longest(node, LOOK_BACK_SECONDS, LOOK_BACK_SECONDS)


def longest_range(node: Node, look_back_inside: float = 0.0) -> float:
    """Return how far back a query looks in seconds, without the look-back of instant selectors; 0 if not at all.

    `look_back_inside` is the look-back of those within subqueries, which adds to the subqueries' ranges.
    """
    return _longest(node, 0.0, look_back_inside)


def spelled_ranges(query: str, look_back: float = 0.0) -> float:
    """Return an upper limit, in seconds, of how far back an unreadable query looks, without its offsets.

    `look_back` is the range of instant selectors. A subquery counts as if it were around everything before it. The
    result is infinite if a range is computed.
    """
    tokens = tokens_of(query)
    longest = look_back
    for opening in (place for place, token in enumerate(tokens) if token.is_sign("[")):
        inside = tokens[opening + 1 : closing_bracket(tokens, opening)]
        longest = max(longest, _range_seconds(inside) + (longest if _is_of_subquery(inside) else 0.0))
    return longest


def spelled_offsets(query: str, longest: float = math.inf) -> float:
    """Return the sum of the offsets into the past of a query that cannot be parsed, in seconds.

    Offsets of more than `longest` seconds are left out: a short one waits for late samples, but a longer one asks for
    another time on purpose. The result is infinite if an offset is computed.
    """
    tokens = tokens_of(query)
    offsets = [_offset_seconds(tokens[place + 1 : place + 4]) for place in _offsets(tokens)]
    return sum(offset for offset in offsets if offset <= longest or math.isinf(offset))


def _range_seconds(inside: Sequence[PromQLToken]) -> float:
    """Return the range between two brackets, without the step of a subquery, which begins with a colon."""
    step = next((place for place, token in enumerate(inside) if token.text.startswith(":")), len(inside))
    return _seconds(inside[0].text) if step == 1 else math.inf


def _is_of_subquery(inside: Sequence[PromQLToken]) -> bool:
    """Return whether the range between two brackets may be that of a subquery."""
    return any(":" in token.text for token in inside)


def _offsets(tokens: Sequence[PromQLToken]) -> Iterator[int]:
    """Yield the places of the word `offset`, also of a label of that name."""
    for place, token in enumerate(tokens):
        if token.kind is TokenKind.WORD and token.text.lower() == "offset":
            yield place


def _offset_seconds(following: Sequence[PromQLToken]) -> float:
    """Return the offset that these tokens begin with; 0 if they begin with none, or with one into the future."""
    if not following:
        return 0.0
    is_signed = following[0].is_sign("-") or following[0].is_sign("+")
    time, *rest = following[is_signed:] or following
    if time.is_sign("(") or (time.kind is TokenKind.WORD and rest and rest[0].is_sign("(")):
        return math.inf
    if not time.text[0].isdigit() or following[0].is_sign("-"):
        return 0.0
    return _seconds(time.text)


def _seconds(text: str) -> float:
    """Return a duration or a number of seconds, at most the longest that Go has; infinity for anything else."""
    plain = text.replace("_", "")
    # Not as an int: Python reads only some thousands of its digits, and a float holds only some hundreds.
    if _NUMBER.fullmatch(plain):
        return min(LONGEST_SECONDS, float(plain))
    if _HEXADECIMAL.fullmatch(plain):
        return float(min(LONGEST_SECONDS, int(plain, 16)))
    if not _DURATION.fullmatch(text):
        return math.inf
    return min(LONGEST_SECONDS, sum(float(count) * _UNITS[unit] for count, unit in _PART.findall(text)))


def _longest(node: Node, bare: float, inside: float) -> float:
    """Return the longest reach of the node in seconds.

    `bare` is the range of a selector that has none, and `inside` is that of one within a subquery.
    """
    match node:
        case SelectorNode():
            has_range, own = _own_reach(node.timing)
            return own if has_range else own + bare
        case Wrapper():
            is_subquery, own = _own_reach(node.kind)
            return own + _longest(node.expression, inside if is_subquery else bare, inside)
        case _:
            return max((_longest(part, bare, inside) for part in operands_of(node)), default=0.0)


def _own_reach(timing: str) -> tuple[bool, float]:
    """Return whether the node has a range, and the sum of its range and offset in seconds."""
    found, offset = _RANGE.search(timing), _OFFSET.search(timing)
    return found is not None, sum(float(part[1]) for part in (found, offset) if part is not None)
