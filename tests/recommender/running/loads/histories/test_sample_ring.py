"""A ring of samples behaves like a table that forgets its oldest columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.running.loads.histories.sample_ring import SampleRing

STEPS = 7


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(100, 140), st.floats(0, 1e6, width=32), st.booleans()), max_size=40
    )
)
def test_a_ring_holds_the_newest_samples_of_each_row(puts: list[tuple[int, int, float, bool]]) -> None:
    ring, newest = SampleRing(STEPS, rows_a_block=2), None
    expected: dict[tuple[int, int], float] = {}
    rows = [ring.add_row() for _ in range(4)]
    for which, index, value, at_once in puts:
        ring.advance(index)
        newest = index if newest is None else max(newest, index)
        if at_once:
            ring.put_at(index, [rows[which]], [value])
        else:
            ring.put(rows[which], np.array([index]), np.array([value]))
        if index > newest - STEPS:
            expected[which, index] = value

    oldest = 0 if newest is None else newest - STEPS + 1
    table = np.full((4, 51), np.nan, dtype=np.float32)
    for (which, index), value in expected.items():
        if index >= oldest:
            table[which, index - 95] = value
    assert np.array_equal(ring.window(rows, 95, 145), table, equal_nan=True)


@settings(max_examples=40)
@given(st.sets(st.integers(0, STEPS - 1)), st.integers(0, STEPS))
def test_requested_samples_are_not_missing(requested: set[int], doubted: int) -> None:
    ring = SampleRing(STEPS)
    row = ring.add_row()
    ring.advance(STEPS - 1)
    for index in requested:
        ring.note_requested(index, index)
    with_samples = {index for index in requested if index % 2}
    for index in with_samples:
        ring.put(row, np.array([index]), np.array([1.0]))

    lacking = {index for first, last in ring.missing_spans(0, STEPS - 1, doubted) for index in range(first, last + 1)}
    assert lacking == {i for i in range(STEPS) if i not in requested or (i >= doubted and i not in with_samples)}


def test_a_dropped_row_is_empty_when_it_is_used_again() -> None:
    ring = SampleRing(STEPS, rows_a_block=1)
    row = ring.add_row()
    ring.put_at(3, [row], [5.0])
    ring.drop_row(row)

    assert ring.add_row() == row
    assert ring.first_known(row) is None
    assert np.isnan(ring.window([row], 3, 3)).all()


def test_the_first_known_sample_moves_with_the_ring() -> None:
    ring = SampleRing(STEPS)
    row = ring.add_row()
    ring.put_at(3, [row], [5.0])
    ring.advance(20)

    assert ring.first_known(row) == ring.oldest == 14


@pytest.mark.parametrize("newest", [10**9, 30_000_000])
def test_a_jump_of_the_clock_clears_the_ring(newest: int) -> None:
    ring = SampleRing(STEPS)
    row = ring.add_row()
    ring.put_at(3, [row], [5.0])
    ring.advance(newest)

    assert ring.known_samples() == 0
    assert ring.missing_spans(newest - STEPS + 1, newest, newest + 1) == [(newest - STEPS + 1, newest)]
