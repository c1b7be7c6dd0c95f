"""Work that gets no thread, because a limit on processes is reached for a while, is done once a thread can start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.readings.errors import ReadingError
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.requests import Row
from tests.support.readings import Harness, Reply, ScriptedPrometheus, Threads, make_harness

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBERS = range(4)
RULES = "externalRules:\n" + "".join(
    f"""
- seriesQuery: 'depth_{number}{{namespace!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}}}}}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
  onNoData: 0
"""
    for number in NUMBERS
)
ZERO = (Row({}, 0.0),)
OUTAGE_SECONDS = 300.0
AFTERWARDS_SECONDS = 15.0


class LackingThreads(Threads):
    """While `held`, keeps the work and raises RuntimeError, as `DaemonThreads` do when no thread can be started."""

    def __call__(self, function: Callable[[], object]) -> None:
        super().__call__(function)
        if self.held:
            raise RuntimeError("can't start new thread")


@pytest.fixture
def threads() -> LackingThreads:
    return LackingThreads()


@pytest.fixture
def prometheus() -> ScriptedPrometheus:
    return ScriptedPrometheus(lambda _: Reply())


@pytest.fixture
def harness(threads: LackingThreads, prometheus: ScriptedPrometheus) -> Harness:
    settings = ReadingSettings(once_asked_ttl_seconds=600, first_answer_wait_seconds=0.01)
    return make_harness(prometheus, rules=RULES, submit=threads, settings=settings)


def value_of(harness: Harness, number: int) -> tuple[Row, ...]:
    return harness.readings.external(harness.external(f"depth_{number}"), "shop", EVERYTHING).rows


def test_requests_whose_query_has_no_thread_get_an_answer_later(harness: Harness, threads: LackingThreads) -> None:
    threads.held = True
    for number in NUMBERS:
        with pytest.raises(ReadingError):
            value_of(harness, number)
    threads.held = False
    harness.pass_time(AFTERWARDS_SECONDS)
    for number in NUMBERS:
        assert value_of(harness, number) == ZERO


def test_all_queries_are_repeated_as_before(harness: Harness, threads: LackingThreads) -> None:
    for number in NUMBERS:
        assert value_of(harness, number) == ZERO
    threads.held = True
    harness.pass_time(OUTAGE_SECONDS)
    for number in NUMBERS:
        with pytest.raises(ReadingError):
            value_of(harness, number)
    threads.held = False
    harness.pass_time(AFTERWARDS_SECONDS)
    for number in NUMBERS:
        assert value_of(harness, number) == ZERO


def test_all_series_are_looked_up_as_before(
    harness: Harness, threads: LackingThreads, prometheus: ScriptedPrometheus
) -> None:
    harness.pass_time(1)
    every = set(prometheus.looked_up)
    assert len(every) == len(NUMBERS)
    threads.held = True
    harness.pass_time(OUTAGE_SECONDS)
    prometheus.looked_up.clear()
    threads.held = False
    harness.pass_time(AFTERWARDS_SECONDS)
    assert set(prometheus.looked_up) == every
