"""When the next poll is due."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.decisions.loop import Decided, Decision
from recommender.decisions.memory import Memory
from recommender.decisions.record import Record, Status
from recommender.running.polls.runner import LATER_SECONDS, LEAST_SECONDS_APART, next_decision_at, seconds_to_next_poll

ANY = st.floats(-1e6, 1e6)


@pytest.mark.parametrize(
    ("interval_left", "requested_left", "since_decided", "seconds"),
    [
        pytest.param(9.0, math.inf, 1.0, 9.0, id="nothing-is-requested"),
        pytest.param(9.0, 2.5, 1.0, 2.51, id="earlier-than-the-interval"),
        pytest.param(9.0, 3600.0, 1.0, 9.0, id="later-than-the-interval"),
        pytest.param(9.0, -5.0, 0.25, 0.75, id="in-the-past"),
        pytest.param(9.0, 0.5, 0.25, 0.75, id="too-soon"),
        pytest.param(9.0, -5.0, 3.0, 0.0, id="in-the-past-after-a-long-poll"),
        pytest.param(-2.0, math.inf, 12.0, 0.0, id="a-poll-longer-than-the-interval"),
        pytest.param(0.5, math.inf, math.inf, 0.5, id="nothing-was-ever-decided"),
    ],
)
def test_the_next_poll_happens_when_it_is_requested_but_never_immediately(
    interval_left: float, requested_left: float, since_decided: float, seconds: float
) -> None:
    assert seconds_to_next_poll(interval_left, requested_left, since_decided) == seconds


@given(ANY, ANY | st.just(math.inf), st.floats(0, 1e6) | st.just(math.inf))
def test_no_requested_time_makes_a_poll_late_or_too_early(
    interval_left: float, requested_left: float, since_decided: float
) -> None:
    seconds = seconds_to_next_poll(interval_left, requested_left, since_decided)
    assert seconds >= max(0.0, LEAST_SECONDS_APART - since_decided)
    assert seconds <= max(interval_left, LEAST_SECONDS_APART)
    assert seconds <= max(requested_left + LATER_SECONDS, LEAST_SECONDS_APART)


def test_the_earliest_time_of_several_decisions_counts() -> None:
    record = Record("one", "clusterSize", 0.0, Status.OK, "")
    made = [
        Decided("a", (Decision(record, Memory()),), None),
        Decided("b", tuple(Decision(record, Memory(), decide_again=time) for time in (70.0, 50.0)), None),
        Decided("c", (Decision(record, Memory(), decide_again=60.0),), None),
    ]
    assert next_decision_at(made) == 50.0
    assert next_decision_at(made[:1]) == math.inf
