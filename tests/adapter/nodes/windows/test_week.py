"""The week of nodes consists of quarters of an hour, from the day and from the past."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.nodes.model.day import SLOT_SECONDS, SLOTS, LoadDay
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.week import QUARTER_SECONDS, QUARTERS, LoadWeek
from adapter.nodes.windows.day import day_after
from adapter.nodes.windows.week import known_quarters, week_at, with_day, with_past
from tests.support.sample_grids import NAN, grid_of

CPU = LoadResource.CPU
END = 1_700_000_100 // QUARTER_SECONDS * QUARTER_SECONDS


def day_until(end: int, means: list[float], names: tuple[str, ...] = ("a",)) -> LoadDay:
    values = np.array([means] * len(names))
    return day_after(LoadDay(), [grid_of(values, step=SLOT_SECONDS, end=end, nodes=names)], end + 1.0)


def past(*means: float, end: int = END, names: tuple[str, ...] = ("a",)) -> LoadWeek:
    found = grid_of(np.array([means] * len(names)), step=QUARTER_SECONDS, end=end, nodes=names)
    return with_past(week_at(LoadWeek(), END + 1.0), found)


@pytest.mark.parametrize("beyond", [0, 1, 2])
def test_a_quarter_of_an_hour_is_the_mean_of_its_three_slots(beyond: int) -> None:
    end = END + beyond * SLOT_SECONDS
    day = day_until(end, [0.1, 0.2, 0.3, 0.5, NAN, 0.7, 0.4, 0.5, 0.6, *[0.9] * beyond])
    week = with_day(week_at(LoadWeek(), end + 1.0), day)
    assert (week.end, week.nodes) == (END, ("a",))
    assert week.means[0, -3:].tolist() == pytest.approx([0.2, NAN, 0.5], abs=0.001, nan_ok=True)
    assert known_quarters(week) == {END, END - 2 * QUARTER_SECONDS}


def test_a_complete_day_fills_a_day_of_the_week() -> None:
    week = with_day(week_at(LoadWeek(), END + 1.0), day_until(END, [0.5] * SLOTS))
    assert len(known_quarters(week)) == 96


@pytest.mark.parametrize(("later_seconds", "names"), [(0.0, ()), (86_400.0, None)])
def test_a_day_without_remaining_nodes_adds_nothing(later_seconds: float, names: tuple[str, ...] | None) -> None:
    """Nodes are removed, or Prometheus is away for a day and nothing else names them."""
    week, now = past(0.25, 0.5), END + 1.0 + later_seconds
    gone = day_after(day_until(END, [0.5] * SLOTS), (), now, names)
    assert gone.nodes == ()
    assert with_day(week, gone) is week


def test_later_samples_do_not_change_a_known_quarter() -> None:
    week = past(0.25, 0.5)
    again = with_past(week, grid_of(np.array([[1.0, 1.0, 1.0]]), step=QUARTER_SECONDS, end=END, nodes=("a",)))
    assert again.means[0, -3:].tolist() == [1.0, 0.25, 0.5]
    assert with_past(week, grid_of(np.array([[0.9]]), step=QUARTER_SECONDS, end=END, nodes=("a",))) is week


def test_the_week_follows_the_clock_and_drops_the_future() -> None:
    week = past(0.25, 0.5)
    later = week_at(week, END + 2 * QUARTER_SECONDS + 1.0)
    assert later.means[0, -4:].tolist() == pytest.approx([0.25, 0.5, NAN, NAN], nan_ok=True)
    assert known_quarters(week_at(week, END - QUARTER_SECONDS + 1.0)) == {END - QUARTER_SECONDS}
    assert week_at(week, END + 30 * 86_400.0).nodes == ()
    assert week_at(week, 0.0).nodes == ()


def test_nodes_come_from_the_node_objects_or_else_from_the_series() -> None:
    week = past(0.25, 0.5)
    joined = week_at(week, END + 1.0, ("a", "b"))
    assert np.isnan(joined.means).all(axis=1).tolist() == [False, True]
    assert week_at(joined, END + 1.0, ("b",)).nodes == ("b",)
    both = with_past(week, grid_of(np.array([[0.75]]), step=QUARTER_SECONDS, end=END, nodes=("0",)))
    assert (both.nodes, both.means[:, -1].tolist()) == (("0", "a"), [0.75, 0.5])


def test_samples_of_a_former_exporter_do_not_count() -> None:
    week = past(0.25, 0.5, names=("a", "b"))
    moved = week_at(week, END + 1.0, ("a", "b"), {"b"})
    assert np.isnan(moved.means[:, -1]).tolist() == [False, True]
    assert not np.isnan(week.means[:, -1]).any()


@settings(max_examples=50, deadline=None)
@given(
    parts=st.lists(
        st.tuples(st.integers(-10, QUARTERS + 10), st.lists(st.sampled_from([NAN, 0.0, 0.5, 1.0]), min_size=1)),
        max_size=5,
    )
)
def test_samples_outside_the_week_do_not_count(parts: list[tuple[int, list[float]]]) -> None:
    week, first = week_at(LoadWeek(), END + 1.0), dict[int, float]()
    for ago, means in parts:
        end = END - ago * QUARTER_SECONDS
        week = with_past(week, grid_of(np.array([means]), step=QUARTER_SECONDS, end=end, nodes=("a",)))
        for back, mean in enumerate(reversed(means)):
            time = end - back * QUARTER_SECONDS
            if not np.isnan(mean) and END - QUARTERS * QUARTER_SECONDS < time <= END:
                first.setdefault(time, mean)
    row = week.means[0].tolist() if first else []
    times = range(END - (QUARTERS - 1) * QUARTER_SECONDS, END + 1, QUARTER_SECONDS)
    assert {time: mean for time, mean in zip(times, row, strict=bool(row)) if not np.isnan(mean)} == first
