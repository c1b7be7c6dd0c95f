"""Stand-ins for what readings depend on: a scripted Prometheus, objects, clocks and threads that tests control."""

from __future__ import annotations

import json
import math
import threading
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.sources.objects import ObjectsNotSyncedError
from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits
from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer, SeriesAnswer, read_instant
from adapter.foundation.sources.prometheus.errors import QueryRefusedError
from adapter.foundation.sources.prometheus.queries.runtime import Started
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import UNPACED
from adapter.metrics.readings.readings import Readings
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.readings.readings_telemetry import ReadingsTelemetry
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from tests.support.answers import read_series

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from adapter.foundation.objects.selectors import Selector
    from adapter.foundation.sources.objects import ObjectSource
    from adapter.foundation.sources.prometheus.errors import PrometheusError
    from adapter.foundation.sources.prometheus.queries.budget import Prometheus
    from adapter.foundation.time.pace import Pace
    from adapter.metrics.readings.backends import Connect
    from adapter.metrics.rulebook.model import Metric, Rulebook

START = 1_800_000_000.25
"""The wall clock of a fake clock at its beginning."""


@dataclass
class FakeClock:
    """A monotonic and a wall clock, both moved by hand."""

    now: float = 1000.0
    wall_offset: float = START - 1000.0

    def forward(self, seconds: float) -> None:
        self.now += seconds

    @property
    def clock(self) -> Clock:
        return Clock(monotonic=lambda: self.now, wall=lambda: self.now + self.wall_offset)


@dataclass(frozen=True)
class Reply:
    """An answer of the scripted Prometheus."""

    samples: tuple[tuple[Mapping[str, str], str], ...] = ()
    warnings: tuple[str, ...] = ()
    seconds_late: float = 0.0
    """How much older than the evaluation the samples' timestamps are."""
    late: tuple[tuple[Mapping[str, str], str], ...] = ()
    """Samples with a timestamp of an hour ago."""
    histograms: tuple[Mapping[str, str], ...] = ()
    """Label sets of native histograms."""
    infos: tuple[str, ...] = ()
    """Information of the query engine, which newer versions of Prometheus keep apart from the warnings."""


def reply(
    *samples: tuple[Mapping[str, str], str],
    warnings: Iterable[str] = (),
    seconds_late: float = 0.0,
    late: Iterable[tuple[Mapping[str, str], str]] = (),
    histograms: Iterable[Mapping[str, str]] = (),
    infos: Iterable[str] = (),
) -> Reply:
    return Reply(tuple(samples), tuple(warnings), seconds_late, tuple(late), tuple(histograms), tuple(infos))


@dataclass
class ScriptedPrometheus:
    """A Prometheus that answers from a function of the query; the product's own code decodes the answers."""

    answer: Callable[[str], Reply | PrometheusError | Exception] = lambda _query: Reply()
    series_answer: Callable[[str], Collection[Mapping[str, str]] | PrometheusError] = lambda _selector: ()
    limits: AnswerLimits = field(default_factory=AnswerLimits)
    series_warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.asked: list[str] = []
        self.times: list[float | None] = []
        self.looked_up: list[str] = []
        self.gate = threading.Event()
        """Queries hang while this is not set."""
        self.gate.set()

    def instant(self, query: str, *, timeout_seconds: float, at: float | None = None) -> InstantAnswer:
        assert timeout_seconds > 0
        assert at is not None
        self.asked.append(query)
        self.times.append(at)
        assert self.gate.wait(30), "a test forgot to open the gate"
        found = self.answer(query)
        if isinstance(found, Exception):
            raise found
        dated = [(pair, at - found.seconds_late) for pair in found.samples] + [(p, at - 3600.0) for p in found.late]
        result: list[object] = [{"metric": labels, "value": [moment, value]} for (labels, value), moment in dated]
        histogram = {"count": "1", "sum": "2"}
        result += [{"metric": labels, "histogram": [at, histogram]} for labels in found.histograms]
        body = {"status": "success", "data": {"resultType": "vector", "result": result}}
        body |= {"warnings": found.warnings, "infos": found.infos}
        return read_instant(query, _json(body), evaluated_at=at, limits=self.limits, pace=UNPACED)

    def series(self, selector: str, *, start: float, timeout_seconds: float) -> SeriesAnswer:
        assert timeout_seconds > 0
        assert start > 0
        self.looked_up.append(selector)
        found = self.series_answer(selector)
        if isinstance(found, Exception):
            raise found
        body = {"status": "success", "data": list(found), "warnings": self.series_warnings}
        return read_series(selector, _json(body), limits=self.limits)


@dataclass(frozen=True)
class RealAnswers:
    """The answers of a real Prometheus at any moment, decoded by the product's own code; it lists no series."""

    rows: Callable[[str, float], Iterable[tuple[Mapping[str, str], str]] | None]
    """Returns labels and value of each series for a query and a moment; None if the query is refused."""

    def instant(self, query: str, *, timeout_seconds: float, at: float | None = None) -> InstantAnswer:
        assert timeout_seconds > 0
        assert at is not None
        rows = self.rows(query, at)
        if rows is None:
            raise QueryRefusedError(query, "execution", "refused")
        result = [{"metric": labels, "value": [at, value]} for labels, value in rows]
        body = {"status": "success", "data": {"resultType": "vector", "result": result}}
        return read_instant(query, _json(body), evaluated_at=at, limits=AnswerLimits(), pace=UNPACED)

    def series(self, selector: str, *, start: float, timeout_seconds: float) -> SeriesAnswer:
        assert start > 0
        assert timeout_seconds > 0
        return read_series(selector, _json({"status": "success", "data": []}), limits=AnswerLimits())


@dataclass
class MadeUpObjects:
    """Made-up objects by kind, namespace and name; labels are `app: <name up to the last dash>`."""

    names_by_namespace: dict[str | None, list[str]] = field(default_factory=dict)
    not_synced: bool = False
    syncs_when_awaited: bool = False
    awaited: list[float] = field(default_factory=list)
    """How many seconds each wait for the first list took at most."""
    unreadable_by_namespace: dict[str | None, int] = field(default_factory=dict)

    def resource(self, group: str, name: str) -> Resource:
        return find_resource(BUILT_IN, group, name)

    def names(self, resource: Resource, namespace: str | None, selector: Selector) -> Collection[str]:
        if self.not_synced:
            raise ObjectsNotSyncedError(f"the first list of {resource.qualified} has not arrived yet")
        names = self.names_by_namespace.get(namespace, [])
        return tuple(sorted(name for name in names if selector.matches({"app": name.rpartition("-")[0]})))

    def labels_of(self, resource: Resource, namespace: str | None, name: str) -> Mapping[str, str] | None:
        found = name in self.names(resource, namespace, EVERYTHING)
        return {"app": name.rpartition("-")[0]} if found else None

    def namespaces_of(self, resource: Resource) -> Collection[str]:
        assert resource.namespaced
        return [namespace for namespace in self.names_by_namespace if namespace is not None]

    def is_synced(self, resource: Resource) -> bool:
        assert resource.plural
        return not self.not_synced

    def await_first_list(self, resource: Resource, seconds: float) -> None:
        assert resource.plural
        self.awaited.append(seconds)
        self.not_synced = self.not_synced and not self.syncs_when_awaited

    def unreadable(self, resource: Resource, namespace: str | None) -> int:
        assert resource.plural
        counts = self.unreadable_by_namespace
        return sum(counts.values()) if namespace is None else counts.get(namespace, 0)


class Threads:
    """Runs submitted work at once in the submitting thread or, with `held`, when a test says so."""

    def __init__(self, *, held: bool = False) -> None:
        self.held = held
        self.waiting: deque[Callable[[], object]] = deque()
        self._at_work = False

    def __call__(self, function: Callable[[], object]) -> None:
        self.waiting.append(function)
        if self.held or self._at_work:
            # What is submitted by what runs comes after it, as on real threads.
            return
        self._at_work = True
        try:
            while self.waiting:
                self.waiting.popleft()()
        finally:
            self._at_work = False

    def run(self) -> None:
        """Run the work that is waiting now."""
        for _ in range(len(self.waiting)):
            self.waiting.popleft()()


PODS_RULES = """
rules:
- seriesQuery: 'http_requests_total{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  name: {as: http_rps}
  metricsQuery: 'sum by (<<.GroupBy>>) (rate(<<.Series>>{<<.LabelMatchers>>}[1m]))'
- seriesQuery: 'raw_total{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  name: {as: raw}
  metricsQuery: '<<.Series>>{<<.LabelMatchers>>}'
- seriesQuery: 'only_exact_total{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  name: {as: only_exact}
  metricsQuery: 'topk(3, sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>}))'
externalRules:
- seriesQuery: 'queue_depth{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: 'queue_rows{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: '<<.Series>>{<<.LabelMatchers>>}'
"""


def rulebook_of(text: str = PODS_RULES) -> Rulebook:
    """Parse rules; a rule with an error fails the test."""
    rulebook = parse_rulebook([load_documents(text, "rules.yaml")], MadeUpObjects().resource)
    assert not rulebook.refused, [str(finding) for finding in rulebook.findings]
    return rulebook


@dataclass
class Harness:
    """Readings whose Prometheus and cluster are stand-ins."""

    readings: Readings
    registry: CollectorRegistry
    clock: FakeClock

    def pods(self, name: str) -> Metric:
        metric = self.readings.catalogue.find_custom("pods", namespaced=True, name=name)
        assert metric is not None
        return metric

    def external(self, name: str) -> Metric:
        metric = self.readings.catalogue.find_external(name)
        assert metric is not None
        return metric

    def pass_time(self, seconds: float, step: float = 0.25) -> None:
        """Let time pass, calling `run_due` as the process would."""
        for _ in range(round(seconds / step)):
            self.clock.forward(step)
            self.readings.run_due()

    def counter(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0


def make_harness(
    prometheus: Prometheus,
    *,
    objects: ObjectSource | None = None,
    rules: str | Rulebook = PODS_RULES,
    submit: Callable[[Callable[[], object]], object] | None = None,
    settings: ReadingSettings | None = None,
    clock: FakeClock | None = None,
    real_time: bool = False,
    cross_checks: bool = False,
    started: Callable[[float], Started] | None = lambda _timeout: Started(0.0, 0.0),
    connect: Connect | None = None,
    pace: Pace = UNPACED,
) -> Harness:
    """Assemble readings with a fake clock unless told otherwise; without cross-checks, queries can be counted.

    Without settings, a request keeps its demand alive for ten minutes, so that time can pass without further requests.
    `started` is when Prometheus says that it started; by default, in 1970.
    """
    settings = settings or ReadingSettings(once_asked_ttl_seconds=600)
    if not cross_checks:
        settings = replace(settings, cross_check_interval_seconds=math.inf)
    registry = CollectorRegistry()
    fake = clock or FakeClock()
    readings = Readings(
        rulebook=rulebook_of(rules) if isinstance(rules, str) else rules,
        objects=objects or MadeUpObjects({"shop": ["web-0", "web-1", "db-0"]}),
        prometheus=prometheus,
        submit=submit or Threads(),
        pace=pace,
        telemetry=ReadingsTelemetry(registry),
        settings=settings,
        clock=Clock() if real_time else fake.clock,
        started=started,
        connect=connect,
    )
    return Harness(readings, registry, fake)


def _json(body: Mapping[str, object]) -> bytearray:
    return bytearray(json.dumps(body, separators=(",", ":")).encode())
