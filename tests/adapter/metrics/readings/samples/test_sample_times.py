"""The age of an answer by the times that its samples state: a cache before Prometheus may return an earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.readings.answers import ByName
from adapter.metrics.readings.errors import AnswerTooOldError, NoSampleError
from adapter.metrics.readings.samples.object_reading import Evaluation
from adapter.metrics.readings.samples.sample_times import SampleTimes
from tests.support.readings import ScriptedPrometheus, make_harness, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.metrics.readings.answers import ExternalAnswer, ObjectsAnswer
    from tests.support.readings import Harness

NOW = 1_800_000_000.0
MOST_SECONDS = 60.0
"""The value of `--max-answer-age`."""


def pods(harness: Harness) -> ObjectsAnswer:
    return harness.readings.objects(harness.pods("http_rps"), "shop", ByName("web-0"), EVERYTHING)


def external(harness: Harness) -> ExternalAnswer:
    return harness.readings.external(harness.external("queue_rows"), "shop", EVERYTHING)


def harness_behind_a_cache(seconds_late: float) -> Harness:
    """Return readings whose Prometheus gives answers that were made so many seconds before."""
    pod, queue = {"namespace": "shop", "pod": "web-0"}, {"namespace": "shop", "queue": "a"}
    answers = {
        True: reply((pod, "5"), seconds_late=seconds_late),
        False: reply((queue, "5"), seconds_late=seconds_late),
    }
    return make_harness(ScriptedPrometheus(answer=lambda query: answers["http_requests" in query]))


@pytest.mark.parametrize("ask", [pods, external])
@settings(max_examples=40)
@given(late=st.integers(-3 * 60, 3 * 60), waited=st.integers(0, 3 * 60))
def test_no_value_is_older_than_allowed_even_from_a_late_answer(
    ask: Callable[[Harness], ObjectsAnswer | ExternalAnswer], late: int, waited: int
) -> None:
    harness = harness_behind_a_cache(late)
    made = harness.clock.clock.wall() - late
    try:
        ask(harness)
        harness.clock.forward(waited)
        answer = ask(harness)
    except (AnswerTooOldError, NoSampleError):
        return
    if answer != type(answer)((), answer.evaluated_at):
        assert harness.clock.clock.wall() - made <= MOST_SECONDS + 1.0
        assert answer.evaluated_at <= made
        assert made - harness.clock.clock.wall() <= MOST_SECONDS + 1.0


def test_a_late_answer_states_its_time_and_expires_by_it() -> None:
    harness = harness_behind_a_cache(30.0)

    assert pods(harness).evaluated_at == harness.clock.clock.wall() // 1 - 30
    harness.clock.forward(31.0)
    with pytest.raises(AnswerTooOldError):
        pods(harness)


def test_the_earliest_admitted_sample_decides() -> None:
    times = SampleTimes(Evaluation(NOW, 1000.0), MOST_SECONDS)
    assert times.evaluation() == Evaluation(NOW, 1000.0)

    assert [times.admits(NOW + seconds) for seconds in (-10, 20, -61, 61, -5)] == [True, True, False, False, True]
    assert times.evaluation() == Evaluation(NOW - 10, 990.0)
