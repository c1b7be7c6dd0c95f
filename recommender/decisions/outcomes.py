"""What a decision means for each target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.owners import notes_about, refusal_of
from recommender.decisions.pauses import active_pauses, stops
from recommender.decisions.record import TargetAction, TargetOutcome
from recommender.decisions.settings import Direction, Output
from recommender.decisions.situation import KnownTarget, fresh_state

if TYPE_CHECKING:
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.record import TargetReference
    from recommender.decisions.settings import RecommendationPolicy

NOT_LOOKED_UP = "its size is looked up in one of the next polls, and nothing is written before"
INPUTS_MISSING = "nothing is written until all inputs are known again"


def outcomes_of(
    policy: RecommendationPolicy, replicas: int | None, inputs: Inputs, now: float, *, fresh: bool = True
) -> tuple[TargetOutcome, ...]:
    """Return the outcome for each target; `fresh` is False for a value that is held because an input is missing."""
    return tuple(_outcome(policy, target, replicas, inputs, now, fresh=fresh) for target in policy.targets)


def _outcome(
    policy: RecommendationPolicy,
    target: TargetReference,
    replicas: int | None,
    inputs: Inputs,
    now: float,
    *,
    fresh: bool,
) -> TargetOutcome:
    state = fresh_state(target, policy, inputs, now)
    current = None if state is None else state.replicas
    waits = _waits_for_its_turn(policy, target, inputs)
    if replicas is None or waits:
        return TargetOutcome(target, current, TargetAction.NONE, message=NOT_LOOKED_UP if waits else "")
    published = TargetAction.METRIC if Output.METRIC in policy.outputs and current != replicas else TargetAction.NONE
    if Output.SCALE not in policy.outputs:
        return TargetOutcome(target, current, published)
    refusal = refusal_of(policy, target, inputs, now)
    if refusal is not None:
        return TargetOutcome(target, current, TargetAction.REFUSED, refusal.owner, refusal.message)
    if state is None:
        # Anything else that is unknown about a target leads to a refusal.
        return TargetOutcome(target, None, published, message=f"there is no {target}")
    obstacle = _obstacle(policy, KnownTarget(target, state), replicas, now) if fresh else INPUTS_MISSING
    if obstacle and replicas != current:
        return TargetOutcome(target, current, TargetAction.NONE, message=obstacle)
    action = TargetAction.NONE if replicas == current else TargetAction.SCALE
    return TargetOutcome(target, current, action, message=notes_about(policy, target, state, inputs))


def _waits_for_its_turn(policy: RecommendationPolicy, target: TargetReference, inputs: Inputs) -> bool:
    """Return whether the target has not been looked up lately because there are so many: nothing is wrong with it."""
    is_one_of_many = policy.each is not None and Output.SCALE in policy.outputs
    return is_one_of_many and target not in inputs.targets and not policy.rivals.get(target)


def _obstacle(policy: RecommendationPolicy, target: KnownTarget, replicas: int, now: float) -> str:
    """Return what stops this change of this target; empty if nothing does.

    The value itself has passed the constraints. But a pause also keeps a size that somebody has set by hand, and of
    several targets each one has a rollout of its own.
    """
    direction = Direction.UP if replicas > target.state.replicas else Direction.DOWN
    pauses = active_pauses(policy.brakes, (target,), now)
    if stops(pauses, direction):
        return "; ".join(each.sentence for each in pauses)
    if target.state.rollout and direction is Direction.DOWN:
        return "a rollout is under way"
    return ""
