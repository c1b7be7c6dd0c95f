"""Changes that an HPA ignores because they are within its tolerance.

An HPA that follows `recommended_replicas` with `AverageValue: 1` divides the recommendation by the current size, and
does nothing while the ratio is close enough to 1 (`isWithin` in `replica_calculator.go` of Kubernetes). With any other
target, or for the recommendation of another object, the result of the HPA is not this ratio, so this module says
nothing about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.facts.scale_targets import group_of
from adapter.foundation.cluster.values.state import Autoscaler, AutoscalerMetric, Observed
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.decisions.record import Step, TargetReference
from recommender.decisions.targets.owners import UNSTATED_GROUPS, is_target_of

if TYPE_CHECKING:
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.targets.target_situation import KnownTarget, Situation

STEP: Final = "hpa-tolerance"
DEFAULT_TOLERANCE_RATIO: Final = 0.1
METRIC_NAME: Final = "recommended_replicas"
_ONE_REPLICA_MILLI: Final = 1000


def tolerance_step(policy: RecommendationPolicy, situation: Situation, inputs: Inputs, value: int) -> Step | None:
    """Return a step that names the HPA that will ignore the value; None if no HPA will ignore it."""
    if Output.METRIC not in policy.outputs:
        return None
    for target in situation.targets:
        autoscalers = inputs.cluster.autoscalers.get(target.reference.namespace)
        for autoscaler in autoscalers.value if isinstance(autoscalers, Observed) else ():
            tolerance = _ignored_within(autoscaler, target, value)
            if tolerance is not None and follows(autoscaler, policy.name, target.reference):
                others = " unless another of its metrics asks for more" if _has_other_metrics(autoscaler) else ""
                detail = (
                    f"HorizontalPodAutoscaler {autoscaler.namespace}/{autoscaler.name} keeps "
                    f"{target.state.replicas}{others}: "
                    f"{value} / {target.state.replicas} is within its tolerance of {tolerance:g}"
                )
                return Step(STEP, value, detail)
    return None


def follows(autoscaler: Autoscaler, recommendation: str, target: TargetReference) -> bool:
    """Return whether the HPA scales the target to the replicas that this recommendation publishes for it."""
    return is_target_of(autoscaler, target) and any(
        METRIC_NAME in metric.name
        and metric.average_milli == _ONE_REPLICA_MILLI
        and _is_about(metric, recommendation, target)
        for metric in autoscaler.metrics
    )


def _is_about(metric: AutoscalerMetric, recommendation: str, target: TargetReference) -> bool:
    """Return whether the metric may be that of the target: nothing in its selector or its object contradicts."""
    if metric.described is not None:
        version, kind, name = metric.described
        group = group_of(version)
        same_group = group == group_of(target.api_version) or group in UNSTATED_GROUPS
        if not same_group or (kind, name) != (target.kind, target.name):
            return False
    labels = {
        "recommendation": recommendation,
        "target_namespace": target.namespace,
        "target_kind": target.kind,
        "target_name": target.name,
    }
    requirements = metric.selector.requirements if metric.selector is not None else ()
    # Other labels come from Prometheus and its scrapes, so their values are not known here.
    return all(each.matches(labels) for each in requirements if each.key in labels)


def _has_other_metrics(autoscaler: Autoscaler) -> bool:
    return len(autoscaler.metrics) + len(autoscaler.resource_names) > 1


def _ignored_within(autoscaler: Autoscaler, target: KnownTarget, value: int) -> float | None:
    """Return the tolerance because of which this HPA ignores the change; None if it does not ignore it.

    The result is also None if nothing changes, if the current size is 0, or if it is outside the bounds of the HPA,
    which then writes a bound whatever its metrics say.
    """
    current = target.state.replicas
    if current in {0, value} or not autoscaler.min_replicas <= current <= autoscaler.max_replicas:
        return None
    stated = autoscaler.scale_up_tolerance_ratio if value > current else autoscaler.scale_down_tolerance_ratio
    tolerance = DEFAULT_TOLERANCE_RATIO if stated is None else stated
    return tolerance if 1.0 - tolerance <= value / current <= 1.0 + tolerance else None
