"""Determines which requests stay unchanged because an HPA divides usage by them (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Unknown
from recommender.decisions.targets.owners import is_target_of, too_old_text
from recommender.decisions.texts.times import is_fresh

if TYPE_CHECKING:
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.policy_settings import RecommendationPolicy
    from recommender.decisions.record import TargetReference

_RESOURCES: Final = ("cpu", "memory")


def held_by_autoscalers(
    policy: RecommendationPolicy, target: TargetReference, inputs: Inputs, now: float
) -> dict[str, str]:
    """Return, by resource, why requests of a target stay unchanged: an HPA divides usage by them, or may do so."""
    where = f"the HPAs of namespace {target.namespace} cannot be looked up"
    seen = inputs.cluster.autoscalers.get(target.namespace, Unknown("they are not watched"))
    if isinstance(seen, Unknown):
        return {name: _stays(name, f"{where}: {seen.reason}; one of them may follow {name}") for name in _RESOURCES}
    if not is_fresh(seen.time, now, policy.stale_after_seconds):
        return {name: _stays(name, f"{where}: {too_old_text(seen)}") for name in _RESOURCES}
    return {
        name: held_by(autoscaler.name, name)
        for autoscaler in seen.value
        if is_target_of(autoscaler, target)
        for name in {*autoscaler.resource_names} & {*_RESOURCES}
    }


def held_by(autoscaler: str, resource: str) -> str:
    """Return why the requests of a resource that an HPA follows are left as they are."""
    follows = f"HorizontalPodAutoscaler {autoscaler} follows {resource}, and divides by the request"
    return _stays(resource, f"{follows} (alsoWithHPA: true)")


def _stays(resource: str, reason: str) -> str:
    return f"requests of {resource} stay: {reason}"
