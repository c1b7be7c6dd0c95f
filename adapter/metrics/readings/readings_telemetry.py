"""Prometheus metrics about readings.

Gauges (demand, rules, plans) are collected from one immutable value, so that a removed rule leaves no series behind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from adapter.metrics.readings.samples.object_reading import Dropped

if TYPE_CHECKING:
    from collections import Counter as Tally
    from collections.abc import Callable, Iterator, Mapping

    from prometheus_client.metrics_core import Metric as Family

    from adapter.metrics.rulebook.model import PlanKind

_PREFIX = "tidewatch_adapter_"


@dataclass(frozen=True, slots=True)
class Overview:
    """The gauges at one moment."""

    demanded: int = 0
    """How many metrics are requested."""
    rule_states: Mapping[str, int] = field(default_factory=dict)
    """How many rules are in each state."""
    plans: Mapping[tuple[str, PlanKind], int] = field(default_factory=dict)
    """How many metrics and selectors are queried by each plan, by rule and plan."""
    distrusted: Mapping[str, int] = field(default_factory=dict)
    """How many metrics are queried exactly because a wider plan gave other values, by rule."""
    values_held: int = 0
    """How many values are in memory."""
    objects: Mapping[str, int] = field(default_factory=dict)
    """How many MetricRule objects are in each state."""
    last_success: Mapping[str, float] = field(default_factory=dict)
    """When Prometheus last answered for each rule, in Unix seconds."""


class ReadingsTelemetry:
    """The counters, and the collector of the gauges."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._dropped = Counter(
            f"{_PREFIX}dropped_samples",
            "Samples from Prometheus that are not the value of an object.",
            ["reason"],
            registry=registry,
        )
        for reason in Dropped:
            self._dropped.labels(reason.value)
        self._refreshes = Counter(
            f"{_PREFIX}refreshes",
            "Refreshes of queries by result: ok, failed, fault.",
            ["result"],
            registry=registry,
        )
        self._narrowings = Counter(
            f"{_PREFIX}plan_narrowings",
            "Proven plans that Prometheus refused, by plan.",
            ["rule", "plan"],
            registry=registry,
        )
        self._cross_checks = Counter(
            f"{_PREFIX}plan_cross_checks",
            "Comparisons of a wider plan with the exact query, two queries each: equal, different, failed.",
            ["rule", "result"],
            registry=registry,
        )
        self._registry = registry

    def collect_from(self, overview: Callable[[], Overview]) -> None:
        """Collect the gauges from this function with every scrape. To be called once."""
        self._registry.register(_OverviewCollector(overview))

    def count_dropped_samples(self, tally: Tally[Dropped]) -> None:
        """Count samples that were dropped."""
        for reason, number in tally.items():
            if number:
                self._dropped.labels(reason.value).inc(number)

    def count_refresh(self, result: str) -> None:
        """Count a refresh."""
        self._refreshes.labels(result).inc()

    def count_refused_plan(self, rule: str, refused: PlanKind) -> None:
        """Count a plan that Prometheus refused."""
        self._narrowings.labels(rule, refused.value).inc()

    def count_cross_check(self, rule: str, result: str) -> None:
        """Count a comparison of two plans: `equal`, `different` or `failed`."""
        self._cross_checks.labels(rule, result).inc()


class _OverviewCollector(Collector):
    def __init__(self, overview: Callable[[], Overview]) -> None:
        self._overview = overview

    def describe(self) -> Iterator[Family]:
        """Yield the families without values, which registration must not compute yet."""
        return _families(Overview())

    def collect(self) -> Iterator[Family]:
        return _families(self._overview())


def _families(overview: Overview) -> Iterator[Family]:
    yield _gauge("demanded_metrics", "Metrics that are in demand.", {(): overview.demanded})
    yield _gauge(
        "values_held", "Values in memory; a value that several queries share counts once.", {(): overview.values_held}
    )
    yield _gauge(
        "rules",
        "Rules by state: ok; refused (an error in it); retained (refused, and its last good "
        "version is served); failing (its series cannot be looked up, or a query fails).",
        {(state,): number for state, number in overview.rule_states.items()},
        "state",
    )
    yield _gauge(
        "metric_rules",
        "MetricRule objects by state: ready; refused (all of it); waiting (for its series, or their look-up).",
        {(state,): number for state, number in overview.objects.items()},
        "state",
    )
    yield _gauge(
        "rule_plan",
        "Requests in demand that a rule answers, one for each metric and selector, by query plan.",
        {(rule, plan.value): number for (rule, plan), number in overview.plans.items()},
        "rule",
        "plan",
    )
    yield _gauge(
        "rule_plan_distrusted",
        "Metrics of a rule that are queried exactly until the next reload, because a wider plan gave other values.",
        {(rule,): number for rule, number in overview.distrusted.items()},
        "rule",
    )
    yield _gauge(
        "rule_last_success_timestamp_seconds",
        "When Prometheus last answered a query of a rule.",
        {(rule,): moment for rule, moment in overview.last_success.items()},
        "rule",
    )


def _gauge(name: str, text: str, values: Mapping[tuple[str, ...], float], *labels: str) -> Family:
    """Return a family of gauges; the keys of `values` are values of these labels."""
    family = GaugeMetricFamily(f"{_PREFIX}{name}", text, labels=labels)
    for label_values, value in values.items():
        family.add_metric(label_values, value)
    return family
