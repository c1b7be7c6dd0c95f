"""Explains step by step why a rule provides a metric from a series, or does not (pure).

`provided_metrics` makes the same decisions for thousands of names without reporting them; this module does so for a
few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.promql.quoting import is_quoted_metric_name
from adapter.metrics.rulebook.lint.examples import distance_from_pods
from adapter.metrics.rulebook.model import Api, Metric, Rule
from adapter.metrics.rulebook.provided_metrics import SeriesShapes, can_query, metrics_by_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.objects.resources import ResolveResource


@dataclass(frozen=True, slots=True)
class WantedMetric:
    """The metric that an explanation is requested for."""

    name: str
    """Name of the metric in the API."""
    resource: str | None = None
    """Kind of object, such as `pods` or `deployments.apps`; None for any kind, and for external metrics."""

    def among(self, metrics: Iterable[Metric]) -> Metric | None:
        """Return the metric; without a kind, preferably that of pods, then that of a namespaced kind."""
        return min((metric for metric in metrics if self._means(metric)), key=distance_from_pods, default=None)

    def _means(self, metric: Metric) -> bool:
        if metric.name != self.name:
            return False
        return self.resource is None or (metric.resource is not None and metric.resource.qualified == self.resource)


@dataclass(frozen=True, slots=True)
class Trace:
    """The result of a rule for one series name."""

    rule: Rule
    series: str
    name: str | None
    """Name in the API by the rule's naming, regardless of filters; None if the naming does not match the series."""
    metric: Metric | None
    """The requested metric; None if the rule does not provide it from this series."""
    obstacle: str | None
    """Why the rule does not provide the metric from the series, as text; None if it does."""


def traces(rule: Rule, shapes: SeriesShapes, wanted: WantedMetric, resolve: ResolveResource) -> list[Trace]:
    """Return what the rule does with each series that has the requested name, in the API or in Prometheus.

    Series that provide the metric come first.
    """
    made = {metrics[0].series: metrics for metrics in metrics_by_name(rule, shapes, resolve) if metrics}
    found = [
        _trace(rule, series, made.get(series, ()), shapes.labels(series), wanted)
        for series in shapes.names()
        if wanted.name in {series, rule.naming.name_for(series)}
    ]
    return sorted(found, key=lambda trace: (trace.metric is None, trace.series))


def passes(rule: Rule, series: str) -> bool:
    """Return whether a series of this name passes the rule's filters."""
    return all(series_filter.passes(series) for series_filter in rule.series_filters)


def _trace(rule: Rule, series: str, made: Iterable[Metric], labels: Iterable[str], wanted: WantedMetric) -> Trace:
    name = rule.naming.name_for(series)
    metric = wanted.among(made)
    obstacle = None if metric else _obstacle(rule, series, name, tuple(made), sorted(labels), wanted)
    return Trace(rule, series, name, metric, obstacle)


def naming_obstacle(rule: Rule, series: str) -> str | None:
    """Return what excludes a series by its name, or the name it gets instead; None if it keeps its name."""
    for series_filter in rule.series_filters:
        if not series_filter.passes(series):
            key = "is" if series_filter.wanted else "isNot"
            return f"its filter `{key}: {series_filter.pattern.text}` drops the series {series}"
    name = rule.naming.name_for(series)
    if name is None:
        return f"its `name.matches` {rule.naming.pattern.text!r} does not match the series {series}"
    if not can_query(rule, series):
        if not is_quoted_metric_name(series):
            return f"the name of the series {series} cannot be written in a query"
        return f'its `metricsQuery` lacks quotes around the series {series}: write {{"<<.Series>>",<<.LabelMatchers>>}}'
    return None if name == series else f"it serves the series {series} as {name!r}"


def _obstacle(
    rule: Rule, series: str, name: str | None, made: tuple[Metric, ...], labels: list[str], wanted: WantedMetric
) -> str:
    if name != wanted.name or not passes(rule, series) or not can_query(rule, series):
        return naming_obstacle(rule, series) or f"it serves the series {series} as {name!r}"
    kinds = sorted(metric.resource.qualified for metric in made if metric.resource)
    if kinds:
        return f"it serves {name!r} for {', '.join(kinds)}, not for {wanted.resource}"
    if rule.api is Api.EXTERNAL:
        return f"it provides no metric from the series {series}"
    names = ", ".join(label for label in labels if label != "__name__") or "none"
    return f"no label of the series {series} identifies an object with its namespace: its labels are {names}"
