from __future__ import annotations

import pytest

from demo.load import BURST_LASTS, DAY_SECONDS, DayClock, day_of

DAY = DAY_SECONDS


def test_equal_seeds_make_equal_days() -> None:
    one, other = day_of(DAY, seed=7), day_of(DAY, seed=7)
    assert [one.connections(t) for t in range(141)] == [other.connections(t) for t in range(141)]


def test_other_seeds_make_other_days() -> None:
    one, other = day_of(DAY, seed=7), day_of(DAY, seed=8)
    assert [one.connections(t) for t in range(141)] != [other.connections(t) for t in range(141)]


def test_the_day_rises_at_least_fivefold_and_ends_as_it_began() -> None:
    for seed in range(20):
        day = day_of(DAY, seed=seed)
        curve = [day.connections(t) for t in range(141)]
        assert max(curve) > 5 * curve[0], seed
        assert curve[-1] < 2 * curve[0], seed


def test_the_burst_is_on_top_of_the_wave() -> None:
    day = day_of(DAY, seed=1)
    before = day.connections((day.burst_at - 0.005) * DAY)
    within = day.connections((day.burst_at + BURST_LASTS / 2) * DAY)
    assert within > 1.1 * before


def test_the_time_of_the_burst_cannot_be_predicted() -> None:
    bursts = [day_of(DAY, seed=seed).burst_at for seed in range(20)]
    assert max(bursts) - min(bursts) > 0.08


def test_a_shorter_day_rises_no_faster() -> None:
    def steepest(seconds: float) -> float:
        day = day_of(seconds, seed=3)
        return max(day.connections(t + 5.0) - day.connections(t) for t in range(int(seconds) - 5))

    assert steepest(40.0) <= 1.5 * steepest(DAY)


@pytest.mark.parametrize("seconds", [-5.0, 0.0, 500.0])
def test_it_is_night_outside_of_the_day(seconds: float) -> None:
    day = day_of(DAY, seed=5)
    assert 25 < day.connections(seconds) < 90


def test_the_day_takes_its_planned_time_if_no_round_is_late() -> None:
    clock = DayClock()
    for tenth in range(451):
        clock.step(tenth / 10, rounds=tenth // 10)
    assert clock.seconds == pytest.approx(45)


@pytest.mark.parametrize("seconds_a_round", [2.0, 5.0])
def test_the_day_has_as_many_rounds_where_each_takes_longer(seconds_a_round: float) -> None:
    clock, tenth = DayClock(), 0
    while clock.seconds < 45:
        tenth += 1
        clock.step(tenth / 10, rounds=int(tenth / 10 / seconds_a_round))
    assert int(tenth / 10 / seconds_a_round) >= 35


def test_the_day_waits_while_there_are_no_rounds_and_while_the_clients_are_stopped() -> None:
    clock = DayClock()
    for tenth in range(600):
        clock.step(tenth / 10, rounds=0)
    assert clock.seconds < 3
    before = clock.seconds
    clock.step(600.0, rounds=1000)
    assert clock.seconds - before <= 0.3
