"""The dashboard of one workload: its connections, its spare capacity, its size, and who decides on the size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.models import units

from helm.tidewatch.dashboards.annotations import scale_calls
from helm.tidewatch.dashboards.panels import Row, chart, counts, entry_of, limit_line, stat, states
from helm.tidewatch.dashboards.panels import dashboard as dashboard_of
from helm.tidewatch.dashboards.predictions import BAND, HORIZONS
from helm.tidewatch.dashboards.queries import gauge, query, worst_status
from helm.tidewatch.dashboards.recommendations import BINDING_NAMES, STATUS_NAMES
from helm.tidewatch.dashboards.variables import PAGE, address, choices, fixed, one_of

if TYPE_CHECKING:
    from grafana_foundation_sdk.builders.dashboard import DashboardLink
    from grafana_foundation_sdk.models import dashboard as models

_SIZE: Final = "tidewatch_recommended_replicas"
_BY_RECOMMENDER: Final = 'job=~"$job"'
_NAMED: Final = 'target_namespace="$namespace",target_name="$name"'
_TARGET: Final = f'{_BY_RECOMMENDER},{_NAMED},target_kind="$kind"'
_OF_ENTRY: Final = (
    f'{_BY_RECOMMENDER},recommendation="$recommendation",target_namespace=~"|$namespace",target_name=~"|$name"'
)
"""The matchers of an entry's own series; with `forEach`, they have the labels of the target, and otherwise none."""
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The alphabet of the suffixes that Kubernetes generates (k8s.io/apimachinery, util/rand)."""
_PODS: Final = f'namespace="$namespace",pod=~"${{name}}-([{_ALPHABET}]{{1,10}}-)?[{_ALPHABET}]{{5}}|${{name}}-[0-9]+"'
"""The matchers of the pods of the workload, by the names that a Deployment, DaemonSet or StatefulSet gives them."""
_HPA: Final = (
    "and on (namespace, horizontalpodautoscaler) kube_horizontalpodautoscaler_info"
    '{namespace="$namespace",scaletargetref_kind="$kind",scaletargetref_name="$name"}'
)
_READY: Final = f"tidewatch_readiness_ready{{{_PODS}}}"
_CONNECTIONS: Final = f"tidewatch_readiness_connections{{{_PODS}}}"
_LIMIT: Final = f"tidewatch_readiness_limit{{{_PODS}}}"
_FREE: Final = f"sum(clamp_min({_LIMIT} - {_CONNECTIONS}, 0) and {_READY} == 1) or 0 * sum({_LIMIT} - {_CONNECTIONS})"
_NO_SIDECAR: Final = "no sidecar"


def dashboard() -> models.Dashboard:
    """Return the dashboard's model."""
    return dashboard_of(
        Dashboard("Tidewatch / Workload")
        .uid("tidewatch-workload")
        .description("One workload: its connections, their limit and the free slots, what is predicted, and its size.")
        .link(_entry()),
        (
            choices("job", "tidewatch_leader"),
            one_of("namespace", _SIZE, "target_namespace", _BY_RECOMMENDER),
            one_of("name", _SIZE, "target_name", f'{_BY_RECOMMENDER},target_namespace="$namespace"'),
            one_of("kind", _SIZE, "target_kind", f"{_BY_RECOMMENDER},{_NAMED}"),
            one_of("recommendation", _SIZE, "recommendation", _TARGET),
            fixed("horizon", HORIZONS),
            address("page", "Page of the recommender", PAGE),
        ),
        scale_calls(f'{_BY_RECOMMENDER},recommendation="$recommendation"'),
        (_now(), _load(), _size()),
    )


def _entry() -> DashboardLink:
    return entry_of("${recommendation:percentencode}")


def _max(metric: str, matchers: str = _TARGET) -> str:
    """Return the PromQL for a gauge; of several replicas, the largest value counts."""
    return f"max({metric}{{{matchers}}})"


def _hpa(metric: str) -> str:
    return f'max(kube_horizontalpodautoscaler_{metric}{{namespace="$namespace"}} {_HPA})'


def _now() -> Row:
    return Row(
        "Now",
        (
            stat("Connections", "The observed load, such as open connections.", query(_max("tidewatch_observed_load")))
            .unit(units.Short)
            .no_value("not predictive"),
            stat(
                "Predicted",
                "The upper quantile of the load at the time when capacity requested now is ready.",
                query(_max("tidewatch_predicted_load", f'{_TARGET},quantile!="0.5"')),
            )
            .unit(units.Short)
            .no_value("no forecast"),
            stat(
                "Free slots",
                "Connections that ready pods can still take before each is at the limit of its readiness sidecar.",
                query(_FREE),
                (1, "green"),
                below="red",
            )
            .unit(units.Short)
            .no_value(_NO_SIDECAR),
            stat(
                "Full pods",
                "Pods whose readiness sidecar says that they are full. They get no new connections.",
                query(f"count({_READY} == 0) or 0 * count({_READY})"),
                (1, "orange"),
            ).no_value(_NO_SIDECAR),
            stat(
                "Replicas",
                "The size of the workload when its recommendation was decided.",
                query(_max("tidewatch_target_replicas")),
            ),
            stat("Recommended", "The recommended size after all constraints.", query(_max(_SIZE))).no_value("no value"),
            stat(
                "HPA's desired replicas",
                "The size that the HPA of the workload wants. kube-state-metrics exposes it.",
                query(_hpa("status_desired_replicas")),
            ).no_value("no HPA"),
            stat(
                "Status",
                "Whether the recommendation can be followed. If it is stale or has an error, the size stays.",
                query(f"max({worst_status('recommendation', _OF_ENTRY)})"),
                names=STATUS_NAMES,
                alert="TidewatchRecommendationStale",
            ).data_links([_entry()]),
        ),
    )


def _load() -> Row:
    predicted = "tidewatch_predicted_load"
    return Row(
        "Connections",
        (
            limit_line(
                chart(
                    "Connections, limit and forecast",
                    "The observed load, what was predicted for the same time, and the limits of all pods together: at"
                    " the limit no new connection is taken.",
                    query(_max("tidewatch_observed_load"), "connections"),
                    query(f'max({predicted}{{{_TARGET},quantile="0.5"}} offset $horizon)', "median"),
                    query(f'max({predicted}{{{_TARGET},quantile!="0.5"}} offset $horizon)', "upper quantile"),
                    query(f"sum({_LIMIT})", "limit"),
                ),
                "limit",
            )
            .override_by_name("upper quantile", list(BAND))
            .data_links([_entry()]),
            chart(
                "Slots that are free",
                "Connections that ready pods can still take. At 0 every new client is refused.",
                query(_FREE, "free slots"),
            ),
            limit_line(
                chart(
                    "Connections by pod",
                    "The fullest pod, the median and the emptiest one, against the limit of a pod.",
                    query(f"max({_CONNECTIONS})", "fullest"),
                    query(f"quantile(0.5, {_CONNECTIONS})", "median"),
                    query(f"min({_CONNECTIONS})", "emptiest"),
                    query(f"min({_LIMIT})", "limit"),
                ),
                "limit",
            ),
        ),
    )


def _size() -> Row:
    return Row(
        "Size",
        (
            limit_line(
                counts(
                    "Replicas, recommendation and HPA",
                    "The size that the workload has, the one that is recommended, the one that its HPA wants, and the"
                    " largest one that the HPA allows.",
                    query(_max("tidewatch_target_replicas"), "replicas"),
                    query(_max(_SIZE), "recommended"),
                    query(_hpa("status_desired_replicas"), "HPA's desired replicas"),
                    query(_hpa("spec_max_replicas"), "HPA's maximum"),
                ),
                "HPA's maximum",
            ).data_links([_entry()]),
            states(
                "Status of the recommendation",
                "Whether the recommendation can be followed, over time.",
                query(worst_status("recommendation", _OF_ENTRY), "{{recommendation}}"),
                STATUS_NAMES,
                alert="TidewatchRecommendationStale",
            ).data_links([_entry()]),
            states(
                "Deciding step",
                "The driver or constraint that decided the size; entries with `forEach` have it on the page alone.",
                gauge("tidewatch_recommendation_binding", "step", matchers=_OF_ENTRY),
                BINDING_NAMES,
            ).data_links([_entry()]),
        ),
    )
