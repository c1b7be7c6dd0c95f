"""The intervals of requests, and of the parts of a request that many clients share."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.metrics.readings.asking.request_intervals import Arrivals, ArrivalsByPart


def arrivals_at(*moments: float) -> Arrivals:
    arrivals = Arrivals(moments[0])
    for moment in moments[1:]:
        arrivals.note(moment)
    return arrivals


@pytest.mark.parametrize(
    ("moments", "now", "interval"),
    [
        pytest.param((0.0,), 5.0, math.inf, id="once is not an interval"),
        pytest.param((0.0, 15.0), 15.0, 15.0, id="twice is one"),
        pytest.param((0.0, 15.0, 22.0, 37.0), 37.0, 7.0, id="the shortest of the last few"),
        pytest.param((0.0, 0.1, 15.0, 15.1), 15.1, 15.0, id="a burst is one arrival"),
        pytest.param((0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6), 0.6, 0.3, id="a steady burst is its own period"),
        pytest.param((0.0, 2.0, 15.0, 30.0, 45.0, 60.0), 60.0, 13.0, id="a stray pair is forgotten, its rest not yet"),
        pytest.param((0.0, 2.0, 15.0, 30.0, 45.0, 60.0, 75.0), 75.0, 15.0, id="and then its rest"),
        pytest.param((0.0, 2.0, 4.0), 100.0, 96.0, id="silence is an interval"),
    ],
)
def test_the_interval_of_a_request_is_the_shortest_of_the_last_few(
    moments: tuple[float, ...], now: float, interval: float
) -> None:
    assert arrivals_at(*moments).interval(now) == pytest.approx(interval)


@pytest.mark.parametrize(
    ("moments", "until"),
    [
        pytest.param((0.0,), 60.0, id="once"),
        pytest.param((0.0, 3.0), 63.0, id="twice in a moment, as long as once"),
        pytest.param((0.0, 30.0), 150.0, id="twice, four times the interval"),
        pytest.param((0.0, 5.0, 10.0, 15.0, 20.0), 40.0, id="four intervals"),
        pytest.param(
            (0.0, 15.0, 16.0, 31.0, 46.0), 106.0, id="the longest of the last few: a stray request is no pace"
        ),
        pytest.param((0.0, 400.0), 1000.0, id="at most the bound"),
    ],
)
def test_a_request_is_in_demand_for_four_of_its_intervals(moments: tuple[float, ...], until: float) -> None:
    assert arrivals_at(*moments).stands_until(60.0, 600.0) == pytest.approx(until)


@given(st.floats(1.0, 60.0), st.integers(6, 40), st.floats(0.0, 1.0), st.floats(0.0, 0.2))
def test_repeated_requests_in_each_round_do_not_shorten_a_regular_interval(
    regular: float, rounds: int, phase: float, double: float
) -> None:
    moments = [phase + number * regular + late for number in range(rounds) for late in (0.0, double)]

    assert arrivals_at(*moments).interval(moments[-1]) == pytest.approx(regular)


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=40))
def test_an_interval_is_never_shorter_than_a_burst(steps: list[float]) -> None:
    moments = [sum(steps[: number + 1]) for number in range(len(steps))]

    assert arrivals_at(*moments).interval(moments[-1]) >= 0.25


Arrived = list[tuple[float, str]]
ROUNDS = [(15.0 * number, part) for number in range(5) for part in "ab"]


def parts_at(arrived: Arrived) -> ArrivalsByPart:
    """Return the intervals known after these arrivals of parts, taken in order of time."""
    (first, part), *others = sorted(arrived)
    arrivals = ArrivalsByPart(first, part)
    for moment, other in others:
        arrivals.note(moment, other)
    return arrivals


@pytest.mark.parametrize(
    ("arrived", "now", "interval"),
    [
        pytest.param([(0.0, "a"), (1.0, "b"), (2.0, "c")], 2.0, math.inf, id="each came once"),
        pytest.param([(0.0, "a"), (1.0, "b"), (15.0, "a"), (16.0, "b")], 16.0, 15.0, id="each by itself"),
        pytest.param([(0.0, "a"), (1.0, "b"), (5.0, "b"), (15.0, "a")], 15.0, 10.0, id="silence of the quicker one"),
        pytest.param([*ROUNDS, (58.0, "c"), (60.0, "c")], 60.0, 2.0, id="the one that returns most often"),
    ],
)
def test_the_interval_is_that_of_the_part_that_returns_most_often(
    arrived: Arrived, now: float, interval: float
) -> None:
    assert parts_at(arrived).interval(now) == pytest.approx(interval)


@pytest.mark.parametrize(
    ("arrived", "until"),
    [
        pytest.param([(0.0, "a"), (1.0, "b")], 61.0, id="once"),
        pytest.param(ROUNDS, 120.0, id="four intervals of a part, not of the time between two"),
        pytest.param([*ROUNDS, (61.0, "c")], 121.0, id="the part that lasts longest"),
    ],
)
def test_a_request_is_in_demand_as_long_as_any_of_its_parts(arrived: Arrived, until: float) -> None:
    assert parts_at(arrived).stands_until(60.0, 600.0) == pytest.approx(until)


def test_very_many_parts_keep_a_request_while_some_give_its_interval() -> None:
    arrivals = parts_at([(15.0 * number + part / 100, f"{part}") for number in range(5) for part in range(1000)])

    assert arrivals.interval(70.0) == pytest.approx(15.0)
    assert arrivals.note(74.0, "another") == math.inf
    assert arrivals.stands_until(60.0, 600.0) >= 134.0


def test_a_part_that_stops_is_replaced_by_another() -> None:
    arrivals = parts_at([(part / 100, f"gone-{part}") for part in range(1000)])
    arrivals.note(75.0, "new")

    assert arrivals.note(80.0, "new") == pytest.approx(5.0)


def test_a_request_stays_in_demand_while_its_only_part_arrives() -> None:
    # The part is put behind the others then, so a thread that looks at that moment finds none.
    arrivals = parts_at([(0.0, "a"), (15.0, "a")])
    seen: list[float] = []

    class Part(str):
        __slots__ = ()

        def __hash__(self) -> int:
            if not arrivals._parts:
                seen.append(arrivals.stands_until(60.0, 600.0))
            return super().__hash__()

        def __eq__(self, other: object) -> bool:
            return super().__eq__(other)

    arrivals.note(30.0, Part("a"))

    assert seen
    assert min(seen) >= 30.0 + 60.0
