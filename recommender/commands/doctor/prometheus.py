"""Doctor: checks that each query has exactly one value, and that its samples arrive often enough."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Unknown
from adapter.foundation.documents.tree import shorten
from adapter.foundation.reports.lines import Line, error, ok, warning
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from recommender.configuration.needs import needs_of_one
from recommender.running.queries.query_values import QueryValues

if TYPE_CHECKING:
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.kinds.kind import Recommendation

QUERY_SECONDS: Final = 5.0
_CORRECT: Final = "correct the query"
_CHECK: Final = "check that Prometheus answers at the address in `prometheus:`, and if it does, the query"


@dataclass(frozen=True, slots=True)
class Samples:
    """The newest samples of a query."""

    age_seconds: float
    spacing_seconds: float | None
    """Time between the newest sample and the one before it; None if unknown."""


def look_at_queries(configuration: Configuration, recommendation: Recommendation) -> tuple[Line, ...]:
    """Ask Prometheus for the value of each query of a recommendation, as `run` does."""
    needs = needs_of_one(recommendation)
    queries = sorted(needs.queries)
    if needs.load and needs.for_each is None:
        queries.append(needs.load)
    backend = recommendation.policy.backend
    settings = configuration.prometheus_of(backend)
    client = None if settings is None else PrometheusClient(settings, awaits_credentials=True)
    values = QueryValues(client, UNPACED, QUERY_SECONDS, backend)
    lines = []
    try:
        for query in queries:
            name, found = f"query/{recommendation.policy.name}/{shorten(query)}", values.value(query)
            if isinstance(found, Unknown):
                lines.append(error(name, found.reason, _CORRECT if found.is_refused else _CHECK))
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
    """Return the line about a query that has a value: whether its samples arrive often enough for `staleAfter`."""
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
