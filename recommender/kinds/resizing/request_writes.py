"""The write of the output `resize` for a target, and its outcome (pure)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.decisions.record import TargetAction, TargetOutcome, TargetReference
from recommender.outputs.pending_writes import PendingWrite, RequestedSize, Resizing

if TYPE_CHECKING:
    from recommender.decisions.calculation import DecisionContext
    from recommender.kinds.resizing.resize_settings import ResizeSettings


@dataclass(frozen=True, slots=True)
class WantedSizes:
    """The sizes that a target should have, and the directions of change that pauses permit."""

    requests: tuple[RequestedSize, ...]
    summary: str
    limits: tuple[RequestedSize, ...] = ()
    may_grow: bool = True
    may_shrink: bool = True


def sized_target(policy: RecommendationPolicy) -> TargetReference | None:
    """Return the only target of a decision; None if it has none."""
    return policy.each if policy.each is not None else next(iter(policy.targets), None)


def resize_write(
    wanted: WantedSizes, settings: ResizeSettings, policy: RecommendationPolicy, confirmed: float
) -> PendingWrite | None:
    """Return the write of the output `resize`; None if it is off or if there is nothing to write.

    None as well while another recommendation resizes the same target.
    """
    target = sized_target(policy)
    if target is None or Output.RESIZE not in policy.outputs or policy.rivals.get(target):
        return None
    if not wanted.requests and not wanted.limits:
        return None
    resizing = Resizing(
        wanted.requests,
        settings.threshold_ratio,
        settings.in_place,
        wanted.may_grow,
        wanted.may_shrink,
        policy.owners.managers,
        wanted.limits,
    )
    until = confirmed + policy.stale_after_seconds
    return PendingWrite(policy.name, target, 0, until, wanted.summary, resizing=resizing)


def resize_outcomes(context: DecisionContext, *, has_value: bool, is_written: bool) -> tuple[TargetOutcome, ...]:
    """Return the sizes' outcome for the target; `is_written` says whether they differ enough from the current ones."""
    policy, target = context.policy, sized_target(context.policy)
    if target is None:
        return ()
    current = context.situation.current
    outcome = TargetOutcome(target, None if current is None else current.state.replicas, TargetAction.NONE)
    if Output.METRIC in policy.outputs and has_value:
        outcome = replace(outcome, action=TargetAction.METRIC)
    rivals = policy.rivals.get(target, ())
    if Output.RESIZE in policy.outputs and rivals:
        owner = f"recommendation {', '.join(rivals)}"
        message = f"{owner} resizes {target} too: keep the output resize in one of them"
        return (replace(outcome, action=TargetAction.REFUSED, owner=owner, message=message),)
    if not is_written:
        return (outcome,)
    refusal = context.inputs.refusals.get((policy.name, target))
    if refusal is not None:
        return (replace(outcome, action=TargetAction.REFUSED, owner=refusal.owner, message=refusal.message),)
    return (replace(outcome, action=TargetAction.RESIZE),)
