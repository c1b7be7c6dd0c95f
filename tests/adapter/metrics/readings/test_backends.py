"""The connections to the backends of the rules in force, and what each backend may delay."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.backends.backend import Backend
from adapter.foundation.sources.prometheus.errors import PrometheusTimeoutError, PrometheusUnreachableError
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.metrics.readings.asking.queries import Query, QueryKey
from adapter.metrics.readings.asking.query_concurrency import BackendLanes
from adapter.metrics.readings.backends import Backends, Source
from adapter.metrics.readings.prometheus_uptime import PrometheusUptime
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.model import PlanKind, Rulebook
from adapter.metrics.rulebook.requests import PlannedQuery
from tests.support.readings import FakeClock, ScriptedPrometheus, make_harness, rulebook_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from adapter.foundation.sources.prometheus.errors import PrometheusError
    from adapter.foundation.sources.prometheus.queries.runtime import Started

RULES = rulebook_of().rules


def backend(password: str = "one", port: int = 9090) -> Backend:
    return Backend.of("eu", PrometheusSettings(f"http://eu:{port}", username="me", password=password))


@dataclass
class Client(ScriptedPrometheus):
    backend: Backend | None = None
    closed: list[Backend | None] = field(default_factory=list)

    def fetch_start(self, seconds: float) -> Started:
        raise PrometheusUnreachableError("its start", f"not within {seconds} s")

    def submit(self, work: Callable[[], None]) -> None:
        work()

    def close(self) -> None:
        self.closed.append(self.backend)


class Harness:
    """Connections, with a record of all that were opened and closed."""

    def __init__(self) -> None:
        self.opened: list[str | None] = []
        self.closed: list[Backend | None] = []
        clock = FakeClock().clock
        default = Source(ScriptedPrometheus(), PrometheusUptime(clock), lambda work: work())
        self.backends = Backends(default, self._connect, clock)

    def _connect(self, asked: Backend) -> Client:
        self.opened.append(asked.settings.password)
        return Client(backend=asked, closed=self.closed)

    def open(self, *named: Backend | None, declared: tuple[Backend, ...] = ()) -> None:
        rules = tuple(replace(RULES[0], id=f"rules[{number}]", backend=each) for number, each in enumerate(named))
        self.backends.open(Rulebook(rules, backends=declared))


def test_a_new_password_takes_effect_while_a_retained_rule_keeps_the_old_one() -> None:
    harness = Harness()
    harness.open(backend("one"))
    harness.open(backend("two"), backend("one"), declared=(backend("two"),))
    assert harness.opened == ["one", "two"]
    assert len(harness.closed) == 1
    harness.open(backend("two"), backend("one"), declared=(backend("two"),))
    assert harness.opened == ["one", "two"]


def test_a_connection_to_another_address_is_not_reused_for_the_same_name() -> None:
    harness = Harness()
    harness.open(backend())
    harness.open(backend(port=9091))
    former, present = harness.backends.of(backend()), harness.backends.of(backend(port=9091))
    assert former.prometheus is not present.prometheus
    # Queries of the former one may still be under way.
    harness.backends.close_unused({backend()})
    assert harness.closed == []
    harness.backends.close_unused(set())
    assert harness.closed == [backend()]


def query(named: Backend | None, number: int) -> Query:
    planned = PlannedQuery(f"up == {number}", PlanKind.WIDE, None, None)
    made = Query(QueryKey(planned, None, None, None, None, None, named), None, None, 10.0)  # type: ignore[arg-type]
    made.payers.add("shop")
    return made


def test_queries_to_one_backend_do_not_delay_those_to_another() -> None:
    settings = ReadingSettings()
    lanes = BackendLanes(settings)
    for number in range(100):
        hanging = query(backend(), number)
        lanes.of(hanging).set(hanging, 0.0)
    assert 0 < len(lanes.begin(1.0)) < 100
    others = [query(None, number) for number in range(settings.max_concurrent_first_queries)]
    for each in others:
        lanes.of(each).set(each, 0.0)
    assert lanes.begin(2.0) == others
    lanes.keep({None})
    assert lanes.running > len(others)


def test_a_reload_looks_up_the_series_of_all_backends_at_the_same_time() -> None:
    # Each answers only after all have been asked.
    together = threading.Barrier(3)

    def meet(selector: str) -> Collection[Mapping[str, str]] | PrometheusError:
        try:
            together.wait(20)
        except threading.BrokenBarrierError:
            return PrometheusTimeoutError(selector, "it was asked alone")
        return ()

    settings = ReadingSettings(reload_discovery_seconds=60)

    def connect(asked: Backend) -> Client:
        return Client(series_answer=meet, backend=asked)

    harness = make_harness(ScriptedPrometheus(), settings=settings, connect=connect)
    named = [backend(port=9090 + number) for number in range(3)]
    rules = (replace(RULES[0], id=f"rules[{number}]", backend=each) for number, each in enumerate(named))
    harness.readings.replace_rulebook(Rulebook(tuple(rules)))
    assert [look_up.failure for look_up in harness.readings.look_ups()] == [None] * 3
    assert harness.readings.has_looked_up_all()
