"""Series that are discovered, for tests of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from adapter.foundation.sources.prometheus.errors import PrometheusError
    from tests.support.readings import Harness


PATTERN_RULES = """
rules:
- seriesQuery: '{__name__=~"^app_.*",namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  name: {matches: "^app_(.*)$"}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: '{__name__=~"^job_.*"}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  name: {matches: "^job_(.*)$"}
  metricsQuery: 'max by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: 'spelled_out{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
"""


def series(*names: str) -> list[dict[str, str]]:
    return [{"__name__": name, "namespace": "shop", "pod": "web-0"} for name in names]


class Series:
    """Series, grouped by how the query of their rule begins."""

    def __init__(self, **by_prefix: Collection[Mapping[str, str]] | PrometheusError) -> None:
        self.by_prefix = by_prefix

    def __call__(self, selector: str) -> Collection[Mapping[str, str]] | PrometheusError:
        return next((found for prefix, found in self.by_prefix.items() if f"^{prefix}_" in selector), ())


def names(harness: Harness) -> list[str]:
    return [
        metric.name
        for metric in harness.readings.catalogue.custom
        if metric.resource and metric.resource.plural == "pods"
    ]
