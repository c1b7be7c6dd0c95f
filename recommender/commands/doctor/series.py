"""Doctor: checks that Prometheus has each entry's series, and that an adapter serves them to HPAs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.reports.lines import SEE_APISERVER, CheckStatus, Line, error, ok, unknown, warning
from adapter.foundation.sources.kubernetes.errors import ForbiddenError, KubernetesError, NotFoundError, StatusError
from adapter.foundation.sources.prometheus.errors import (
    IncompleteAnswerError,
    PrometheusError,
    SettingsError,
    refuse_partial,
)
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from recommender.commands.doctor.prometheus import QUERY_SECONDS
from recommender.configuration.needs import needs_of_one
from recommender.decisions.constraints.tolerance import METRIC_NAME
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.kinds.table import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adapter.foundation.sources.kubernetes.writing import ObjectClient
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from recommender.decisions.record import TargetReference
    from recommender.kinds.kind import Recommendation


OLD_SECONDS: Final = 120.0
"""A sample older than this means missed scrapes, even if Prometheus scrapes only once a minute."""
REPLICAS: Final = "tidewatch_recommended_replicas"
_RESOURCES: Final = "tidewatch_recommended_resources"
_RECOMMENDATION: Final = "recommendation"
_TARGET_LABELS: Final = ("target_namespace", "target_kind", "target_name")
_SCRAPE: Final = (
    "let Prometheus scrape /metrics of each of the recommender's pods (metrics.serviceMonitor.enabled or "
    "metrics.podMonitor.enabled of the chart), check that one of them leads, and see with `tidewatch-recommender "
    "recommend` whether the entry has a value"
)


@dataclass(frozen=True, slots=True)
class ExportedSeries:
    """A set of series that Prometheus should have for an entry."""

    line: str
    """The name of the line in the report."""
    metric: str
    labels: Mapping[str, str]
    """Labels that at least one series must have."""


def metrics_of(recommendation: Recommendation) -> tuple[str, ...]:
    """Return which metrics an entry exports as its value."""
    return kind_of(recommendation.policy.type).value_metrics(recommendation.subject)


def exported_by(recommendation: Recommendation) -> Iterator[ExportedSeries]:
    """Yield the series of one entry: one for each metric, and for each target unless targets are decided one by one."""
    policy = recommendation.policy
    own = {_RECOMMENDATION: policy.name}
    has_one_decision = kind_of(policy.type).has_targets and needs_of_one(recommendation).for_each is None
    for metric in metrics_of(recommendation):
        suffix = "/resources" if metric == _RESOURCES else ""
        if not has_one_decision:
            yield ExportedSeries(f"series/{policy.name}", metric, own)
            continue
        for target in policy.targets or (None,):
            name = f"series/{policy.name}" + (f"/{target}" if target else "") + suffix
            yield ExportedSeries(name, metric, own | _labels_of(target))


def _labels_of(target: TargetReference | None) -> dict[str, str]:
    values = ("", "", "") if target is None else (target.namespace, target.kind, target.name)
    return dict(zip(_TARGET_LABELS, values, strict=True))


def look_at_series(settings: PrometheusSettings | None, recommendations: Sequence[Recommendation]) -> tuple[Line, ...]:
    """Ask Prometheus when the series of each entry were last scraped."""
    if settings is None:
        fix = "set --prometheus-url, or prometheus.url in the configuration"
        return (unknown("series", "it was not checked: no Prometheus is named", fix),)
    wanted = [
        exported for each in recommendations if Output.METRIC in each.policy.outputs for exported in exported_by(each)
    ]
    try:
        with PrometheusClient(settings) as client:
            scraped = {
                metric: _scraped_series(client, metric) for metric in dict.fromkeys(each.metric for each in wanted)
            }
    except IncompleteAnswerError as e:
        message = f"it is not known whether Prometheus has the series: {e}"
        return (unknown("series", message, "check the stores behind its address"),)
    except (PrometheusError, SettingsError) as e:
        message = f"{settings.endpoint.shown} does not answer queries: {e}"
        return (error("series", message, "check the address of Prometheus and its credentials"),)
    return tuple(judge_series(each, *scraped[each.metric]) for each in wanted)


def _scraped_series(client: PrometheusClient, metric: str) -> tuple[list[tuple[Mapping[str, str], float]], float]:
    """Return the labels and the last sample's time of each series, and the time of the answer."""
    by = ", ".join((_RECOMMENDATION, *_TARGET_LABELS))
    query = f"max by ({by}) (timestamp({metric}))"
    answer = client.instant(query, timeout_seconds=QUERY_SECONDS)
    refuse_partial(query, answer.warnings)
    return [(each.labels, each.value) for batch in answer.batches(UNPACED) for each in batch], answer.evaluated_at


def judge_series(exported: ExportedSeries, scraped: Sequence[tuple[Mapping[str, str], float]], now: float) -> Line:
    """Return the line about an entry's series; `scraped` has the labels and the last sample's time of each series."""
    metric = exported.metric
    times = [
        time
        for labels, time in scraped
        if all(labels.get(name, "") == value for name, value in exported.labels.items())
    ]
    if not times:
        return error(exported.line, f"Prometheus has no {metric} for it", _SCRAPE)
    age = max(0.0, now - max(times))
    if age > OLD_SECONDS:
        message = f"the last sample of {metric} in Prometheus is {age:.0f} s old"
        return warning(exported.line, message, _SCRAPE)
    return ok(exported.line, f"Prometheus has {metric} for it, {age:.0f} s old")


_GROUP: Final = "external.metrics.k8s.io"
_RULES: Final = "give the adapter rules/adapter/recommendations.yaml (rules.shipped: [recommendations] of its chart)"


def look_at_metric(client: ObjectClient, policy: RecommendationPolicy, target: TargetReference) -> Line:
    """Request the External metric of one target, as an HPA does."""
    name = f"adapter/{policy.name}/{target}"
    # If the recommender does not scale the target, only an HPA can.
    status = CheckStatus.WARNING if Output.SCALE in policy.outputs else CheckStatus.ERROR
    path = f"/apis/{_GROUP}/v1beta1/namespaces/{target.namespace}/{METRIC_NAME}"
    selector = f"target_kind={target.kind},target_name={target.name}"
    try:
        document = client.get(path, {"labelSelector": selector}).document
    except NotFoundError:
        return Line(name, status, f"no adapter serves the External metric {METRIC_NAME}", _RULES)
    except ForbiddenError as e:
        fix = f"grant list on {METRIC_NAME}.{_GROUP}, or run this as a user who has it"
        return unknown(name, f"reading it is forbidden: {e}", fix)
    except StatusError as e:
        return Line(name, status, f"the adapter does not answer: {e}", "run `tidewatch-adapter doctor`")
    except KubernetesError as e:
        return unknown(name, f"it could not be read: {e}", SEE_APISERVER)
    return judge_metric(name, status, document)


def judge_metric(name: str, status: CheckStatus, document: Mapping[str, Any]) -> Line:
    """Return the line about the values in the answer; its status is `status` if there are none."""
    items = document.get("items")
    if document.get("kind") != "ExternalMetricValueList" or not isinstance(items, list):
        fix = f"check which server is behind the APIService v1beta1.{_GROUP}"
        return error(name, "the answer is not a list of External metrics", fix)
    if not items:
        return Line(name, status, f"the adapter serves no {METRIC_NAME} for it", "see the line about its series")
    if len(items) > 1:
        return error(name, f"the adapter serves {len(items)} values, and an HPA adds them up", _RULES)
    return ok(name, f"the adapter serves {METRIC_NAME} {items[0].get('value')}")
