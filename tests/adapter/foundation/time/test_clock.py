"""Moments are read back, and forward steps are noticed, after somebody has set the wall clock."""

from __future__ import annotations

import pytest

from adapter.foundation.time.clock import ForwardSteps, Moment

HOUR = 3600.0


@pytest.mark.parametrize(
    ("wall", "expected"),
    [
        (1010.0, 1000.0),
        (1009.5, 1000.0),
        (1010.5, 1000.0),
        (1010.0 - HOUR, 1000.0 - HOUR),
        (1010.0 - 5.0, 995.0),
        (1010.0 + HOUR, 1000.0),
    ],
    ids=["not set", "slewed back", "slewed forward", "set back", "set back by less than the age", "set forward"],
)
def test_setting_the_wall_clock_back_does_not_change_the_age_of_a_moment(wall: float, expected: float) -> None:
    moment = Moment(monotonic=50.0, wall=1000.0)
    assert moment.as_of(Moment(monotonic=60.0, wall=wall)) == expected


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        ([0.0, 0.0], [0.0, 0.0]),
        ([0.0, HOUR, HOUR], [0.0, HOUR, 0.0]),
        ([0.0, -HOUR, 0.0], [0.0, 0.0, HOUR]),
        ([0.0, HOUR, 0.0], [0.0, HOUR, 0.0]),
        ([0.0, 0.6, 1.2, 1.8], [0.0, 0.0, 1.2, 0.0]),
    ],
    ids=["not set", "forward", "back and forward", "forward and back", "in small steps"],
)
def test_each_forward_step_of_the_wall_clock_counts_once(ahead: list[float], expected: list[float]) -> None:
    steps = ForwardSteps()
    moments = [Moment(10.0 * number, 10.0 * number + gained) for number, gained in enumerate(ahead)]
    assert [steps.seconds_since_last(moment) for moment in moments] == pytest.approx(expected)
