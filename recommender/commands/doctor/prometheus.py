"""Doctor: queries that have exactly one value, and the clusters whose series the store holds."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Unknown
from adapter.foundation.documents.tree import shortened
from adapter.foundation.reports.lines import Line, error, ok, unknown, warning
from adapter.foundation.reports.stores import CLUSTERS, judge_clusters
from adapter.foundation.sources.prometheus.client import PrometheusClient
from adapter.foundation.sources.prometheus.clusters import clusters_in
from adapter.foundation.sources.prometheus.connection import check_connection
from adapter.foundation.sources.prometheus.errors import PrometheusError, SettingsError
from adapter.foundation.time.pace import UNPACED
from recommender.configuration.needs import needs_of_one
from recommender.running.queries.query_values import QueryValues

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.kinds.kind import Recommendation

QUERY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Samples:
    """The newest samples of a query."""

    age_seconds: float
    spacing_seconds: float | None
    """Between the newest and the one before; None: not known."""


def look_at_queries(configuration: Configuration, recommendation: Recommendation) -> tuple[Line, ...]:
    """Ask Prometheus for the value of each query of a recommendation, as `run` does."""
    needs = needs_of_one(recommendation)
    queries = sorted(needs.queries)
    if needs.load and needs.for_each is None:
        queries.append(needs.load)
    backend = recommendation.policy.backend
    values = QueryValues(PrometheusClient, UNPACED, QUERY_SECONDS, backend)
    values.use(configuration.prometheus_of(backend))
    lines = []
    try:
        for query in queries:
            name, found = f"query/{recommendation.policy.name}/{shortened(query)}", values.value(query)
            if isinstance(found, Unknown):
                lines.append(error(name, f"{query} has no value: {found.reason}", "correct the query or `prometheus:`"))
            else:
                age = max(0.0, time.time() - found.time)
                samples = Samples(age, values.spacing_seconds(query, found.time))
                value = f"{query} has exactly one value, {found.value:g}"
                lines.append(judge_samples(name, value, samples, configuration.stale_after_seconds))
        lines += [_line_of_metric(values, recommendation, *each) for each in needs.metrics.items()]
    finally:
        values.close()
    return tuple(lines)


def _line_of_metric(values: QueryValues, recommendation: Recommendation, metric: str, without: str) -> Line:
    """Return the line about a metric that must have series."""
    name, found = f"series/{recommendation.policy.name}/{metric}", values.value(f"count({metric})")
    if isinstance(found, Unknown):
        return error(name, f"{metric} has no series, or cannot be asked: {found.reason}", without)
    return ok(name, f"{metric} has {found.value:g} series")


def judge_samples(name: str, value: str, samples: Samples, stale_after_seconds: float) -> Line:
    """Return the line about a query that has a value: whether its samples come often enough for `staleAfter`."""
    allowed = f"staleAfter is {stale_after_seconds:g} s"
    if samples.age_seconds > stale_after_seconds:
        message = (
            f"{value}, but its newest sample is {samples.age_seconds:.0f} s old, and {allowed}: it counts as stale"
        )
        return error(name, message, "check that its series are still scraped")
    apart = samples.spacing_seconds or 0.0
    if 2 * apart > stale_after_seconds:
        message = (
            f"{value}, but its samples are {apart:.0f} s apart, and {allowed}: it becomes stale whenever a sample is "
            "late"
        )
        return warning(name, message, f"set staleAfter to at least {math.ceil(2 * apart)}s, or scrape more often")
    return ok(name, value)


def look_at_backend(name: str, settings: PrometheusSettings) -> tuple[Line, ...]:
    """Ask one Prometheus of several whether it answers, and for the clusters whose series it holds."""
    line = f"prometheus/{name}"
    try:
        version = check_connection(settings, QUERY_SECONDS)
    except (PrometheusError, SettingsError) as e:
        fix = f"correct the backend {name} in `prometheus`; only the entries that ask it are harmed"
        return (error(line, f"{settings.endpoint.shown} does not answer: {e}", fix),)
    answers = ok(line, f"{settings.endpoint.shown} answers queries (version {version})")
    return answers, *(replace(each, name=f"{line}/clusters") for each in look_at_clusters(settings))


def look_at_clusters(settings: PrometheusSettings | None) -> tuple[Line, ...]:
    """Ask Prometheus for the clusters whose series it holds; no line without a Prometheus."""
    if settings is None:
        return ()
    try:
        found = clusters_in(settings, QUERY_SECONDS)
    except (PrometheusError, SettingsError) as e:
        return (unknown(CLUSTERS, f"it is not known whether the store holds several clusters: {e}", "try again"),)
    return (judge_clusters(found, str(settings.matchers or ""), "prometheus.matchers"),)
