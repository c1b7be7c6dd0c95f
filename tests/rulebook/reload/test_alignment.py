"""Which runs of two lists are the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.rulebook.reload.alignment import aligned


@pytest.mark.parametrize(
    ("before", "now", "equal", "replaced"),
    [
        ("", "", [], []),
        ("abc", "abc", [(0, 0), (1, 1), (2, 2)], []),
        ("abc", "axc", [(0, 0), (2, 2)], [("b", "x")]),
        ("abcd", "acd", [(0, 0), (2, 1), (3, 2)], []),
        ("ab", "nab", [(0, 1), (1, 2)], []),
        ("abcd", "bcda", [(1, 0), (2, 1), (3, 2)], []),
        ("aab", "axb", [(0, 0), (2, 2)], [("a", "x")]),
        ("abcde", "xbyde", [(1, 1), (3, 3), (4, 4)], [("a", "x"), ("c", "y")]),
        ("abcdef", "fabcxe", [(0, 1), (1, 2), (2, 3), (4, 5)], [("d", "x")]),
    ],
)
def test_runs_between_the_same_neighbours(
    before: str, now: str, equal: list[tuple[int, int]], replaced: list[tuple[str, str]]
) -> None:
    found = aligned(before, now)
    assert list(found.equal) == equal
    parts = [(before[was.start : was.stop], now[came.start : came.stop]) for was, came in found.replaced]
    assert parts == replaced


@given(st.text("abcdefgh", max_size=12), st.text("abcdefgh", max_size=12))
@settings(max_examples=200, deadline=None)
def test_whatever_the_lists_nothing_is_told_twice_or_out_of_order(before: str, now: str) -> None:
    found = aligned(before, now)
    assert all(before[was] == now[came] for was, came in found.equal)
    for side in (0, 1):
        places = [pair[side] for pair in found.equal]
        assert places == sorted(set(places))
        assert not set(places) & {index for pair in found.replaced for index in pair[side]}
    assert all(was and came for was, came in found.replaced)


class Counted:
    """A value that counts how often it is compared."""

    comparisons = 0

    def __init__(self, value: str) -> None:
        self._value = value

    def __hash__(self) -> int:
        return hash(self._value)

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return isinstance(other, Counted) and self._value == other._value


def test_a_thousand_equal_items_among_broken_ones_are_not_compared_with_each_other() -> None:
    number = 1_000
    before = [Counted("same") for _ in range(number)]
    now = [Counted("broken" if index % 3 else "same") for index in range(number)]
    Counted.comparisons = 0
    aligned(before, now)
    assert Counted.comparisons < 10 * number
