"""Work that gets no thread, because a limit on processes is reached for a while, is done once a thread can start."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.service.runtime.threads import WorkWaitsError
from adapter.foundation.sources.prometheus.backends.backend import Backend
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.runtime import Started
from adapter.metrics.readings.errors import ReadingError
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.requests import Row
from tests.support.readings import Harness, Reply, ScriptedPrometheus, Threads, make_harness, rulebook_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.metrics.rulebook.model import Rulebook

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
    """While `held`, keeps the work and raises WorkWaitsError, as `DaemonThreads` do when no thread can be started."""

    def __call__(self, function: Callable[[], object]) -> None:
        super().__call__(function)
        self._refuse_if_held()

    def start(self) -> None:
        self._refuse_if_held()
        super().__call__(lambda: None)

    def _refuse_if_held(self) -> None:
        if self.held:
            raise WorkWaitsError("can't start new thread", self.start)


@dataclass
class Client(ScriptedPrometheus):
    """A client of a backend whose threads a test controls."""

    submit: LackingThreads = field(default_factory=LackingThreads)

    def fetch_start(self, _: float) -> Started:
        return Started(0.0, 0.0)

    def close(self) -> None:
        """Keep what waits, as the threads of a closed client do."""


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


def rules_of(password: str) -> Rulebook:
    backend = Backend.of("eu", PrometheusSettings("http://eu:9090", username="me", password=password))
    rulebook = rulebook_of(RULES)
    rules = tuple(replace(each, backend=backend) for each in rulebook.rules)
    return replace(rulebook, rules=rules, backends=(backend,))


def test_work_for_a_client_that_a_reload_replaces_is_done(prometheus: ScriptedPrometheus) -> None:
    clients: list[Client] = []

    def connect(_: Backend) -> Client:
        clients.append(Client())
        return clients[-1]

    settings = ReadingSettings(once_asked_ttl_seconds=600, first_answer_wait_seconds=0.01)
    harness = make_harness(prometheus, rules=rules_of("one"), settings=settings, connect=connect)
    harness.pass_time(1)
    (former,) = clients
    former.submit.held = True
    for number in NUMBERS:
        with pytest.raises(ReadingError):
            value_of(harness, number)
    harness.readings.replace_rulebook(rules_of("two"))
    assert len(clients) == 2
    assert former.submit.waiting
    harness.pass_time(1)
    former.submit.held = False
    harness.pass_time(AFTERWARDS_SECONDS)
    assert not former.submit.waiting
    for number in NUMBERS:
        assert value_of(harness, number) == ZERO


def test_a_long_shortage_adds_no_work(harness: Harness, threads: LackingThreads) -> None:
    value_of(harness, 0)
    harness.pass_time(10)
    threads.held = True
    harness.pass_time(OUTAGE_SECONDS)
    waiting = len(threads.waiting)
    harness.pass_time(OUTAGE_SECONDS)
    assert len(threads.waiting) == waiting
