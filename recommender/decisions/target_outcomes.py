"""The outcome of a decision for each target."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recommender.decisions.constraints.pauses import active_pauses, stops
from recommender.decisions.policy_settings import Direction, Output, RecommendationPolicy
from recommender.decisions.record import TargetAction, TargetOutcome, TargetReference
from recommender.decisions.targets.owners import notes_about, refusal_of
from recommender.decisions.targets.target_situation import KnownTarget, fresh_state, is_absent
from recommender.decisions.texts.record_texts import CALL_FAILED

if TYPE_CHECKING:
    from recommender.decisions.inputs import Inputs

NOT_LOOKED_UP = "its size is looked up in one of the next polls, and nothing is written before that"
INPUTS_MISSING = "nothing is written until all inputs are known again"


def absence_of(target: TargetReference) -> str:
    """Return the message about a target that certainly does not exist."""
    return f"{target} does not exist: correct the target, or create it"


def outcomes_of(
    policy: RecommendationPolicy, replicas: int | None, inputs: Inputs, now: float, *, fresh: bool = True
) -> tuple[TargetOutcome, ...]:
    """Return the outcome for each target; `fresh` is False for a value that is held because an input is missing."""
    return tuple(
        replace(_outcome(policy, target, replicas, inputs, now, fresh=fresh), recommended_replicas=replicas)
        for target in policy.targets
    )


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
    absence = absence_of(target) if is_absent(target, policy, inputs, now) else ""
    if replicas is None or waits:
        return TargetOutcome(target, current, TargetAction.NONE, message=NOT_LOOKED_UP if waits else absence)
    published = TargetAction.METRIC if Output.METRIC in policy.outputs and current != replicas else TargetAction.NONE
    if Output.SCALE not in policy.outputs:
        return TargetOutcome(target, current, published, message=absence)
    refusal = refusal_of(policy, target, inputs, now)
    if refusal is not None:
        # If the owner is unknown, a target that already has its size needs no write that could be refused.
        needs_no_write = replicas == current and (refusal.permits_equal_size or refusal.owner is None)
        is_idle = refusal.is_awaited or needs_no_write
        action = TargetAction.NONE if is_idle else TargetAction.REFUSED
        return TargetOutcome(target, current, action, refusal.owner, refusal.message, is_awaited=refusal.is_awaited)
    if state is None:
        # All other unknown facts about a target lead to a refusal.
        return TargetOutcome(target, None, published, message=absence)
    obstacle = _obstacle(policy, KnownTarget(target, state), replicas, now) if fresh else INPUTS_MISSING
    if obstacle and replicas != current:
        return TargetOutcome(target, current, TargetAction.NONE, message=obstacle)
    failure = None if replicas == current else inputs.failures.get((policy.name, target))
    failed = "" if failure is None else f"{CALL_FAILED}: {failure}"
    message = "; ".join(filter(None, (failed, notes_about(policy, target, state, inputs))))
    action = TargetAction.NONE if replicas == current else TargetAction.SCALE
    return TargetOutcome(target, current, action, message=message, has_failed=failure is not None)


def _waits_for_its_turn(policy: RecommendationPolicy, target: TargetReference, inputs: Inputs) -> bool:
    """Return whether the target is one of many and has yet to be looked up in a later poll, which is not a fault."""
    is_one_of_many = (policy.each is not None or bool(policy.namespace)) and Output.SCALE in policy.outputs
    return is_one_of_many and target not in inputs.targets and not policy.rivals.get(target)


def _obstacle(policy: RecommendationPolicy, target: KnownTarget, replicas: int, now: float) -> str:
    """Return why this change of this target must not be written; empty if nothing stops it.

    Although the value itself has passed the constraints, a pause also keeps a size that somebody has set by hand, and
    each of several targets has a rollout of its own.
    """
    direction = Direction.UP if replicas > target.state.replicas else Direction.DOWN
    pauses = active_pauses(policy.brakes, (target,), now)
    if stops(pauses, direction):
        return "; ".join(each.sentence for each in pauses)
    if target.state.rollout and direction is Direction.DOWN:
        return "a rollout is under way"
    return ""
