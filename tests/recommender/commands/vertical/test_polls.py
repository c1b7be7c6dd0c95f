"""The memory that polls keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.commands.vertical.polls import CounterFamily, PollError, Polls
from tests.recommender.commands.vertical.harness import Clock

if TYPE_CHECKING:
    import pytest


def test_outcomes_are_counted_and_failures_are_shown_until_the_next_success(caplog: pytest.LogCaptureFixture) -> None:
    answers = iter(["updated", "", "", "unchanged"])

    def poll() -> str:
        answer = next(answers)
        if not answer:
            raise PollError("failed", "no node")
        return answer

    clock = Clock()
    polls = Polls(poll, CounterFamily("polls_total", "Polls."), clock)
    shown = []
    for clock.now in (10.0, 20.0, 30.0, 40.0):
        polls.run()
        shown.append((polls.last_poll().status, polls.last_poll().body))
    assert shown == [(200, b"ok\n"), (500, b"no node\n"), (500, b"no node\n"), (200, b"ok\n")]
    assert b'polls_total{outcome="failed"} 2\n' in polls.metrics()
    assert caplog.text.count("nothing was changed: no node") == 1
    clock.now = 100.0
    assert polls.idle_seconds() == 60.0
