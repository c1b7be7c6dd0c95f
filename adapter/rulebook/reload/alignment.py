"""Finds the equal runs of two lists, in time that grows hardly faster than their length.

`difflib` compares every item with every other, which takes minutes for a rule file with thousands of equal items. Like
patience diff, this module first orders the items that appear once in both lists, and then extends runs of equal items.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

_Pair: TypeAlias = "tuple[int, int]"


@dataclass(frozen=True, slots=True)
class Aligned:
    """What two lists have in common, and what took the place of what between that."""

    equal: tuple[_Pair, ...]
    """Positions before and now, ascending in both."""
    replaced: tuple[tuple[range, range], ...]
    """Runs before and now that stand between the same neighbours, neither of them empty."""


def aligned(before: Sequence[Hashable], now: Sequence[Hashable]) -> Aligned:
    """Return what stayed in its order, and what stands in the place of what."""
    equal: list[_Pair] = []
    replaced: list[tuple[range, range]] = []
    start, start_now = 0, 0
    for anchor, anchor_now in (*_anchors(before, now), (len(before), len(now))):
        gap, gap_now = before[start:anchor], now[start_now:anchor_now]
        head = _equal_from_the_start(gap, gap_now)
        tail = _equal_from_the_start(gap[head:][::-1], gap_now[head:][::-1])
        equal += ((start + index, start_now + index) for index in range(head))
        equal += ((anchor - index, anchor_now - index) for index in range(tail, 0, -1))
        middle, middle_now = range(start + head, anchor - tail), range(start_now + head, anchor_now - tail)
        replaced += [(middle, middle_now)] if middle and middle_now else []
        equal += [(anchor, anchor_now)] if anchor < len(before) else []
        start, start_now = anchor + 1, anchor_now + 1
    return Aligned(tuple(equal), tuple(replaced))


def _anchors(before: Sequence[Hashable], now: Sequence[Hashable]) -> list[_Pair]:
    """Return the longest series of items that stand once in both lists and in the same order."""
    places = _once(now)
    pairs = [(index, places[item]) for item, index in _once(before).items() if item in places]
    return list(_longest_rising(pairs))


def _once(items: Sequence[Hashable]) -> dict[Hashable, int]:
    number = Counter(items)
    return {item: index for index, item in enumerate(items) if number[item] == 1}


def _longest_rising(pairs: Sequence[_Pair]) -> Iterator[_Pair]:
    """Yield the longest subsequence in which the second number rises too; `pairs` ascend by their first."""
    ends: list[int] = []
    last: list[int] = []
    previous: list[int | None] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        previous.append(last[length - 1] if length else None)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [index]
    yield from (pairs[index] for index in reversed(list(_chain(last[-1] if last else None, previous))))


def _chain(index: int | None, previous: Sequence[int | None]) -> Iterable[int]:
    while index is not None:
        yield index
        index = previous[index]


def _equal_from_the_start(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))
