"""Changes that an HPA ignores because they are within its tolerance.

An HPA that follows `recommended_replicas` with `AverageValue: 1` divides the recommendation by the present size, and
does nothing while the ratio is close enough to 1 (`isWithin` in `replica_calculator.go` of Kubernetes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Autoscaler, Observed
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.decisions.record import Step
from recommender.decisions.targets.owners import is_target_of

if TYPE_CHECKING:
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.targets.target_situation import KnownTarget, Situation

STEP: Final = "hpa-tolerance"
DEFAULT_TOLERANCE_RATIO: Final = 0.1
METRIC_NAME: Final = "recommended_replicas"


def tolerated(policy: RecommendationPolicy, situation: Situation, inputs: Inputs, value: int) -> Step | None:
    """Return a step that names the HPA that will ignore the value; None if no HPA will ignore it."""
    if Output.METRIC not in policy.outputs:
        return None
    for target in situation.targets:
        autoscalers = inputs.cluster.autoscalers.get(target.reference.namespace)
        for autoscaler in autoscalers.value if isinstance(autoscalers, Observed) else ():
            if _follows(autoscaler, target) and (tolerance := _ignored_within(autoscaler, target, value)) is not None:
                detail = (
                    f"HorizontalPodAutoscaler {autoscaler.namespace}/{autoscaler.name} keeps {target.state.replicas}: "
                    f"{value} / {target.state.replicas} is within its tolerance of {tolerance:g}"
                )
                return Step(STEP, value, detail)
    return None


def _follows(autoscaler: Autoscaler, target: KnownTarget) -> bool:
    follows = any(METRIC_NAME in name for name in autoscaler.metric_names)
    return follows and is_target_of(autoscaler, target.reference)


def _ignored_within(autoscaler: Autoscaler, target: KnownTarget, value: int) -> float | None:
    """Return the tolerance because of which this HPA ignores the change; None if it does not ignore it.

    The result is also None if nothing changes, or if the present size is 0.
    """
    current = target.state.replicas
    if current in {0, value}:
        return None
    stated = autoscaler.scale_up_tolerance_ratio if value > current else autoscaler.scale_down_tolerance_ratio
    tolerance = DEFAULT_TOLERANCE_RATIO if stated is None else stated
    return tolerance if 1.0 - tolerance <= value / current <= 1.0 + tolerance else None
