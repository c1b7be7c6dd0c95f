from __future__ import annotations

import pytest

from demo.load import BURST_AT, BURST_LASTS, day_of

DAY = 120.0


def test_equal_seeds_make_equal_days() -> None:
    one, other = day_of(DAY, seed=7), day_of(DAY, seed=7)
    assert [one.connections(t) for t in range(121)] == [other.connections(t) for t in range(121)]


def test_other_seeds_make_other_days() -> None:
    one, other = day_of(DAY, seed=7), day_of(DAY, seed=8)
    assert [one.connections(t) for t in range(121)] != [other.connections(t) for t in range(121)]


@pytest.mark.parametrize("seed", range(20))
def test_the_day_rises_at_least_fivefold_and_ends_as_it_began(seed: int) -> None:
    day = day_of(DAY, seed=seed)
    curve = [day.connections(t) for t in range(121)]
    assert max(curve) > 5 * curve[0]
    assert curve[-1] < 2 * curve[0]


def test_the_burst_is_on_top_of_the_wave() -> None:
    day = day_of(DAY, seed=1)
    before = day.connections((BURST_AT - 0.005) * DAY)
    within = day.connections((BURST_AT + BURST_LASTS / 2) * DAY)
    assert within > 1.1 * before


def test_a_shorter_day_rises_no_faster() -> None:
    def steepest(seconds: float) -> float:
        day = day_of(seconds, seed=3)
        return max(day.connections(t + 5.0) - day.connections(t) for t in range(int(seconds) - 5))

    assert steepest(40.0) <= 1.5 * steepest(120.0)


@pytest.mark.parametrize("seconds", [-5.0, 0.0, 500.0])
def test_it_is_night_outside_of_the_day(seconds: float) -> None:
    day = day_of(DAY, seed=5)
    assert 25 < day.connections(seconds) < 90
