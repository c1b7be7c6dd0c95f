"""The metrics of rules, for tests that have a list of series instead of a running Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.metrics.rulebook.provided_metrics import SeriesShapes, metrics_by_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.model import Metric, Rule


def metrics_of(rule: Rule, series: Iterable[Mapping[str, str]], resolve: ResolveResource) -> list[Metric]:
    """Return the metrics that a rule makes from the series, both if two have the same API name and object.

    `series` are label sets as Prometheus's series API gives them.
    """
    shapes = SeriesShapes()
    shapes.add(series)
    return [metric for metrics in metrics_by_name(rule, shapes, resolve) for metric in metrics]


def merge_metrics(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """Return one metric, the last given, for each kind of object, scope and API name, in ascending order of names."""
    merged = {(metric.qualified, metric.namespaced): metric for metric in metrics}
    return tuple(merged[key] for key in sorted(merged))
