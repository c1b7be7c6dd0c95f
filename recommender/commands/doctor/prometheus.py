"""Doctor: queries that have exactly one value, and whether Prometheus has what the recommender publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.cluster.state import Unknown
from adapter.documents.tree import shortened
from adapter.reports.lines import Line, error, ok, unknown, warning
from adapter.sources.prometheus.client import PrometheusClient
from adapter.sources.prometheus.errors import PrometheusError, SettingsError
from adapter.timing.pace import UNPACED
from recommender.configuration.needs import queries_in
from recommender.decisions.settings import Output
from recommender.predictive.settings import PredictiveSettings
from recommender.running.query_values import QueryValues

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.sources.prometheus.settings import PrometheusSettings
    from recommender.configuration.model import Configuration, Recommendation
    from recommender.decisions.record import TargetReference

QUERY_SECONDS: Final = 5.0
OLD_SECONDS: Final = 120.0
"""Age of a sample which two scrapes a minute apart cannot explain."""
_LABELS: Final = ("recommendation", "target_namespace", "target_kind", "target_name")
PUBLISHED: Final = f"max by ({', '.join(_LABELS)}) (timestamp(tidewatch_recommended_replicas))"
_SCRAPE: Final = (
    "let Prometheus scrape /metrics of each of the recommender's pods (recommender.serviceMonitor of the chart), and "
    "check that one of them leads"
)


def look_at_queries(configuration: Configuration, recommendation: Recommendation) -> tuple[Line, ...]:
    """Ask Prometheus for the value of each query of a recommendation, as `run` does."""
    subject = recommendation.subject
    queries = sorted(queries_in(subject))
    if isinstance(subject, PredictiveSettings) and subject.load and subject.for_each is None:
        queries.append(subject.load)
    values = QueryValues(PrometheusClient, UNPACED, QUERY_SECONDS)
    values.use(configuration.prometheus)
    lines = []
    try:
        for query in queries:
            name, found = f"query/{recommendation.policy.name}/{shortened(query)}", values.value(query)
            if isinstance(found, Unknown):
                lines.append(error(name, f"{query} has no value: {found.reason}", "correct the query or `prometheus:`"))
            else:
                lines.append(ok(name, f"{query} has exactly one value, {found.value:g}"))
    finally:
        values.close()
    return tuple(lines)


def look_at_series(settings: PrometheusSettings | None, recommendations: Sequence[Recommendation]) -> tuple[Line, ...]:
    """Ask Prometheus when each recommendation was last scraped."""
    if settings is None:
        fix = "set --prometheus-url, or prometheus.url in the configuration"
        return (unknown("series", "it was not checked: no Prometheus is named", fix),)
    try:
        with PrometheusClient(settings) as client:
            answer = client.instant(PUBLISHED, timeout_seconds=QUERY_SECONDS)
            samples = [sample for batch in answer.batches(UNPACED) for sample in batch]
    except (PrometheusError, SettingsError) as e:
        message = f"{settings.endpoint.shown} does not answer queries: {e}"
        return (error("series", message, "check the address of Prometheus and its credentials"),)
    scraped = {tuple(sample.labels.get(label, "") for label in _LABELS): sample.value for sample in samples}
    return tuple(
        judge_series(each.policy.name, target, scraped, answer.evaluated_at)
        for each in recommendations
        if Output.METRIC in each.policy.outputs
        for target in each.policy.targets or (None,)
    )


def judge_series(
    recommendation: str, target: TargetReference | None, scraped: Mapping[tuple[str, ...], float], now: float
) -> Line:
    """Return the line about one series; `scraped` holds the time of the last sample by labels."""
    about = ("", "", "") if target is None else (target.namespace, target.kind, target.name)
    name = f"series/{recommendation}" + (f"/{target}" if target else "")
    time = scraped.get((recommendation, *about))
    if time is None:
        return error(name, "Prometheus has no tidewatch_recommended_replicas of it", _SCRAPE)
    age = now - time
    if age > OLD_SECONDS:
        message = f"the last sample of tidewatch_recommended_replicas in Prometheus is {age:.0f} s old"
        return warning(name, message, _SCRAPE)
    return ok(name, f"Prometheus has tidewatch_recommended_replicas of it, {max(0.0, age):.0f} s old")
