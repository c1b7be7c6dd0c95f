"""Arithmetic on grids of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodes.model.loads import LoadResource
from adapter.nodes.windows.grid import (
    align_to_step,
    column_times,
    join,
    kept_columns,
    not_after,
    regrid,
    span,
    trim_grid,
    without_repeats,
)
from tests.support.sample_grids import END, NAN, STEP, grid_of

if TYPE_CHECKING:
    from adapter.nodes.model.samples import SampleGrid


def same(grid: SampleGrid, *rows: list[float]) -> bool:
    return np.array_equal(grid.values, np.array(rows), equal_nan=True)


def test_a_column_has_its_time() -> None:
    assert column_times(grid_of([0.1, 0.2, 0.3])).tolist() == [END - 30, END - 15, END]


@pytest.mark.parametrize(
    ("end", "columns", "expected"),
    [
        (END, 3, [0.1, 0.2, 0.3]),
        (END, 2, [0.2, 0.3]),
        (END, 5, [NAN, NAN, 0.1, 0.2, 0.3]),
        (END + 15, 3, [0.2, 0.3, NAN]),
        (END - 15, 3, [NAN, 0.1, 0.2]),
        (END - 15, 1, [0.2]),
        (END + 45, 3, [NAN, NAN, NAN]),
        (END - 4500, 2, [NAN, NAN]),
        (END + 30, 6, [NAN, 0.1, 0.2, 0.3, NAN, NAN]),
    ],
)
def test_a_span_has_the_requested_steps_and_nan_outside_the_grid(end: int, columns: int, expected: list[float]) -> None:
    found = span(grid_of([0.1, 0.2, 0.3]), end, columns)
    assert (found.end, same(found, expected)) == (end, True)


def test_a_span_between_the_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="not on the 15 s steps"):
        span(grid_of([0.1]), END + 1, 1)


def test_newer_values_replace_the_overlap_and_late_samples_fill_it() -> None:
    older = grid_of([[0.1, 0.2, NAN], [0.4, 0.5, 0.6]], newest=[END - 15, END], scrape=[15, 15], reset_at=[END, NAN])
    newer = grid_of([[0.21, 0.3, NAN], [NAN, 0.61, 0.7]], end=END + STEP, newest=[END + 9, NAN], scrape=[30, NAN])
    found = join(older, newer)
    assert found.end == END + STEP
    assert same(found, [0.1, 0.21, 0.3, NAN], [0.4, 0.5, 0.61, 0.7])
    assert found.newest.tolist() == [END + 9, END]
    assert found.scrape_seconds.tolist() == [30, 15]
    assert np.array_equal(found.reset_at, [END, NAN], equal_nan=True)


def test_a_counter_that_stands_still_keeps_the_time_of_its_last_advance() -> None:
    """A step in which it does not advance says nothing of this; without the time, it would never count as stuck."""
    older = grid_of([[0.1], [0.2]], advancing=[END - 30, END])
    newer = grid_of([[0.0], [0.3]], end=END + STEP, advancing=[NAN, END + STEP])
    assert join(older, newer).advancing.tolist() == [END - 30, END + STEP]


def test_a_hole_between_two_parts_is_nan() -> None:
    assert same(join(grid_of([0.1]), grid_of([0.2], end=END + 45)), [0.1, NAN, NAN, 0.2])


def test_parts_join_in_any_order() -> None:
    first, second = grid_of([0.1, 0.2]), grid_of([0.3, 0.4], end=END + 30)
    assert same(join(first, second), [0.1, 0.2, 0.3, 0.4])
    assert same(join(second, first), [0.1, 0.2, 0.3, 0.4])


def test_join_keeps_the_nodes_of_either_part() -> None:
    older = grid_of([[0.1], [0.2]], nodes=("a", "b"))
    newer = grid_of([[0.3], [0.4]], nodes=("b", "c"), end=END + STEP)
    found = join(older, newer)
    assert found.nodes == ("a", "b", "c")
    assert same(found, [0.1, NAN], [0.2, 0.3], [NAN, 0.4])
    assert found.newest.tolist() == [END, END + STEP, END + STEP]


def test_a_join_has_at_most_the_kept_number_of_columns() -> None:
    """Joining a file of last year takes no memory for the time between."""
    found = join(grid_of(np.full(40, 0.1)), grid_of([0.2], end=END + 365 * 86_400))
    assert found.values.shape == (1, kept_columns(STEP))
    assert np.nansum(found.values) == 0.2


def test_an_older_part_from_a_clock_that_was_ahead_is_dropped() -> None:
    assert same(join(grid_of([0.1], end=END + 3600), grid_of([0.2])), [0.2])


@pytest.mark.parametrize("other", [grid_of([0.1], step=30), grid_of([0.1], resource=LoadResource.MEMORY)])
def test_grids_with_different_steps_or_resources_are_not_joined(other: SampleGrid) -> None:
    with pytest.raises(ValueError, match="cannot join"):
        join(grid_of([0.1]), other)


def test_cut_keeps_the_longest_window_and_its_margin() -> None:
    found = trim_grid(grid_of(np.arange(500.0)))
    assert found.values.shape == (1, kept_columns(STEP))
    assert (found.end, found.values[0, -1]) == (END, 499.0)
    assert kept_columns(STEP) * STEP >= 900 + 2 * STEP
    assert trim_grid(grid_of([0.1, 0.2])).values.shape == (1, 2)


@pytest.mark.parametrize(("now", "expected"), [(END, [0.1, 0.2]), (END - 1, [NAN, 0.1]), (END - 16, [NAN, NAN])])
def test_steps_later_than_now_are_dropped(now: float, expected: list[float]) -> None:
    found = not_after(grid_of([0.1, 0.2]), now)
    assert same(found, expected)
    assert found.end <= now


def test_regrid_adds_new_nodes_and_drops_removed_ones() -> None:
    found = regrid(grid_of([[0.1, 0.2], [0.3, 0.4]], nodes=("a", "c")), ("b", "c"))
    assert found.nodes == ("b", "c")
    assert same(found, [NAN, NAN], [0.3, 0.4])
    assert np.array_equal(found.newest, [NAN, END], equal_nan=True)
    assert regrid(found, ()).values.shape == (0, 2)
    assert same(regrid(regrid(found, ()), ("a",)), [NAN, NAN])


def test_a_grid_without_nodes_takes_the_first_part() -> None:
    assert same(join(grid_of(np.empty((0, 3)), nodes=()), grid_of([0.1, 0.2], end=END + STEP)), [NAN, NAN, 0.1, 0.2])


def test_steps_after_the_newest_sample_only_repeat_it() -> None:
    times = np.array([0.0, 15.0, 30.0, 45.0])
    values = np.full((3, 4), 0.5)
    found = without_repeats(values, times, np.array([14.0, 40.0, NAN]), np.array([15.0, 15.0, 15.0]))
    assert np.array_equal(found, [[0.5, 0.5, NAN, NAN], [0.5] * 4, [0.5] * 4], equal_nan=True)


@given(
    st.lists(st.sampled_from([NAN, 0.1, 0.5]), min_size=1, max_size=90),
    st.lists(st.sampled_from([NAN, 0.2, 0.9]), min_size=1, max_size=9),
    st.integers(-9, 90),
)
def test_each_step_of_a_join_comes_from_the_newer_part_or_else_from_the_older(
    old: list[float], new: list[float], later: int
) -> None:
    older, newer = grid_of(old), grid_of(new, end=END + later * STEP)
    found = join(older, newer)
    known = dict(zip(column_times(older).tolist(), old, strict=True))
    known |= {at: value for at, value in zip(column_times(newer).tolist(), new, strict=True) if not np.isnan(value)}
    for at, value in zip(column_times(found).tolist(), found.values[0].tolist(), strict=True):
        assert np.array_equal(value, known.get(at, NAN), equal_nan=True)


@given(st.floats(0, 4e9), st.integers(1, 300))
def test_aligned_times_are_steps_not_after_the_time(seconds: float, step: int) -> None:
    found = align_to_step(seconds, step)
    assert found % step == 0
    assert 0 <= seconds - found < step
