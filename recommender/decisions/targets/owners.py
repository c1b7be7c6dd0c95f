"""Determines who owns the size of a target, so that two programs never fight over it.

A target is refused if an HPA scales it, if a ScaledObject of KEDA names it, if another recommendation of the
configuration or another recommender scales it, or if a field manager that keeps writing `spec.replicas` has written it.
It is also refused if its owner cannot be looked up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from adapter.foundation.cluster.facts.scale_targets import group_of
from adapter.foundation.cluster.values.state import Autoscaler, Observed, Unknown
from adapter.foundation.reports.counts import count_of
from recommender.decisions.policy_settings import Output
from recommender.decisions.targets.target_situation import is_recent
from recommender.decisions.texts.times import is_fresh, rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recommender.decisions.inputs import Inputs, ReplacedSize, TargetState
    from recommender.decisions.policy_settings import Owners, RecommendationPolicy
    from recommender.decisions.record import TargetReference

T = TypeVar("T")

KEDA_LABEL: Final = "scaledobject.keda.sh/name"
UNSTATED_GROUPS: Final = frozenset({"", "extensions"})
"""API groups of a `scaleTargetRef` that match any group: an empty one, and `extensions`, the predecessor of `apps`."""
_SCALERS: Final = ("tidewatch*", "kube-controller-manager", "cluster-proportional-autoscaler")
"""Field managers that write `spec.replicas` because they scale; no later upgrade is expected from them."""


@dataclass(frozen=True, slots=True)
class TargetRefusal:
    """Why a target is not scaled."""

    owner: str | None
    """The owner of the target's size; None if the owner cannot be looked up."""
    message: str
    is_awaited: bool = False
    """Whether the answer is still pending: until it arrives, nothing is written, and nothing is reported as refused."""
    permits_equal_size: bool = False
    """Whether a target that has its size already is not refused."""


def refusal_of(
    policy: RecommendationPolicy, target: TargetReference, inputs: Inputs, now: float
) -> TargetRefusal | None:
    """Return why this program must not write the size of the target; None if it may."""
    rivals = policy.rivals.get(target, ())
    if rivals:
        owner = f"recommendation {', '.join(rivals)}"
        fix = "keep the output scale in one of them"
        return TargetRefusal(owner, f"{owner} scales {target} too: {fix}")
    return (
        _refusal_for_autoscaler(policy, target, inputs, now)
        or _refusal_for_scaled_object(policy, target, inputs, now)
        or _refusal_for_state(policy, target, inputs, now)
    )


def with_owned_targets(policy: RecommendationPolicy, inputs: Inputs, now: float) -> Inputs:
    """Return the inputs with the states of the targets, and with who owns those whose size is written.

    Answers about targets that are too old are left out, since no calculation may begin from them.
    """
    states = {each: inputs.targets[each] for each in policy.targets if is_recent(each, policy, inputs, now)}
    if Output.SCALE in policy.outputs:
        for target, state in states.items():
            if isinstance(state, Observed) and state.value is not None:
                is_owned = _is_owned(policy, target, inputs, now)
                states[target] = replace(state, value=replace(state.value, is_owned=is_owned))
    return replace(inputs, targets=states)


def _is_owned(policy: RecommendationPolicy, target: TargetReference, inputs: Inputs, now: float) -> bool | None:
    """Return whether something else owns the size of the target; None if that is still looked up.

    A size that another recommender has replaced does not count, because it is written again after some time.
    """
    refusal = refusal_of(policy, target, inputs, now)
    if refusal is not None and refusal.is_awaited:
        return None
    return refusal is not None and refusal.owner is not None and not refusal.permits_equal_size


def is_target_of(autoscaler: Autoscaler, target: TargetReference) -> bool:
    """Return whether `scaleTargetRef` of the HPA names the target; the version of the API group does not matter."""
    wanted = (target.namespace, target.kind, target.name)
    if (autoscaler.namespace, autoscaler.target_kind, autoscaler.target_name) != wanted:
        return False
    group = group_of(autoscaler.target_api_version)
    return group == group_of(target.api_version) or group in UNSTATED_GROUPS


def notes_about(policy: RecommendationPolicy, target: TargetReference, state: TargetState, inputs: Inputs) -> str:
    """Return a note for the user about a target that is scaled; empty if there is none."""
    autoscalers = inputs.cluster.autoscalers.get(target.namespace)
    unseen = ""
    if autoscalers is not None and _may_be_unseen(policy, autoscalers):
        where = f"the HPAs of namespace {target.namespace} may not be read"
        unseen = f"{where}, so it is scaled even if one of them scales it too"
    return "; ".join(note for note in (_upgrade_note(state), unseen) if note)


def _upgrade_note(state: TargetState) -> str:
    """Return a note if a manager such as Helm, which does not count as owner, will write replicas again; else empty."""
    # A target whose manager counts as owner has been refused.
    others = dict.fromkeys(name for name in state.replicas_managers or () if not matches(name, _SCALERS))
    if not others:
        return ""
    return (
        f"{', '.join(others)} wrote spec.replicas, and the next upgrade writes them again: "
        "leave replicas out of that manifest"
    )


def _refusal_for_autoscaler(
    policy: RecommendationPolicy, target: TargetReference, inputs: Inputs, now: float
) -> TargetRefusal | None:
    autoscalers = inputs.cluster.autoscalers.get(target.namespace, Unknown("they are not watched"))
    if _may_be_unseen(policy, autoscalers):
        return None
    return _refusal_by(autoscalers, "HPAs", policy, target, now)


def _refusal_for_scaled_object(
    policy: RecommendationPolicy, target: TargetReference, inputs: Inputs, now: float
) -> TargetRefusal | None:
    scaled_objects = inputs.scaled_objects.get(target.namespace)
    return None if scaled_objects is None else _refusal_by(scaled_objects, "ScaledObjects", policy, target, now)


def _refusal_by(
    owners: Observed[tuple[Autoscaler, ...]] | Unknown,
    called: str,
    policy: RecommendationPolicy,
    target: TargetReference,
    now: float,
) -> TargetRefusal | None:
    """Return the refusal if one of `owners` scales the target, or if they cannot be looked up; else None."""
    if isinstance(owners, Unknown):
        reason, is_awaited = owners.reason, owners.is_awaited
    else:
        owner = next((each for each in owners.value if is_target_of(each, target)), None)
        if owner is not None:
            return _owned_by(owner)
        if is_fresh(owners.time, now, policy.stale_after_seconds):
            return None
        reason, is_awaited = too_old_text(owners), False
    where = f"the {called} of namespace {target.namespace} cannot be looked up"
    return TargetRefusal(None, f"{where}: {reason}; one of them may own {target}", is_awaited)


def too_old_text(found: Observed[T]) -> str:
    """Return that an answer is too old, with the reason why there is no newer one."""
    return "the last answer is too old" + (f": {found.failure}" if found.failure else "")


def _may_be_unseen(policy: RecommendationPolicy, autoscalers: Observed[tuple[Autoscaler, ...]] | Unknown) -> bool:
    """Return whether targets are scaled without knowledge of HPAs: reading them is refused, and they are not required.

    The result is False while the HPAs are merely not known yet.
    """
    return isinstance(autoscalers, Unknown) and autoscalers.is_refused and not policy.owners.autoscalers_required


def _owned_by(autoscaler: Autoscaler) -> TargetRefusal:
    scaled_object = autoscaler.labels.get(KEDA_LABEL)
    if scaled_object:
        owner = f"ScaledObject {autoscaler.namespace}/{scaled_object}"
        fix = "remove the output scale, or let KEDA follow the metric with ignoreNullValues set to false"
    else:
        owner = f"HorizontalPodAutoscaler {autoscaler.namespace}/{autoscaler.name}"
        fix = "remove the output scale, or let the HPA follow the metric recommended_replicas"
    return TargetRefusal(owner, f"{owner} scales it: {fix}")


def _refusal_for_state(
    policy: RecommendationPolicy, target: TargetReference, inputs: Inputs, now: float
) -> TargetRefusal | None:
    observed = inputs.targets.get(target, Unknown("it has not been read"))
    if isinstance(observed, Unknown):
        return TargetRefusal(None, f"{target} cannot be looked up: {observed.reason}", observed.is_awaited)
    if not is_fresh(observed.time, now, policy.stale_after_seconds):
        return TargetRefusal(None, f"{target} cannot be looked up: {too_old_text(observed)}")
    state = observed.value
    managed = refusal_for_managers(state.replicas_managers or () if state else (), policy.owners)
    # A state that is not looked up in each poll outlives the time for which the other size is left in place.
    replaced = state.replaced if state else None
    return managed or (refusal_for_replaced_size(replaced) if replaced and now < replaced.until else None)


def refusal_for_replaced_size(own: ReplacedSize) -> TargetRefusal:
    """Return the refusal of a target whose size another recommender has replaced."""
    owner = "another recommender"
    # The other size is left out: it may follow a load, and each new message about one of many targets is an event.
    replaced = f"{owner} has replaced the {count_of(own.replicas, 'replica')} that this one wrote"
    until = f"nothing is written before {rfc3339(own.until)}"
    fix = "keep the output scale in one of them"
    return TargetRefusal(owner, f"{replaced}, so {until}: {fix}", permits_equal_size=True)


def refusal_for_managers(managers: Iterable[str], owners: Owners) -> TargetRefusal | None:
    """Return the refusal if one of the field managers that wrote `spec.replicas` keeps writing it; else None."""
    manager = next((each for each in managers if matches(each, owners.managers)), None)
    if manager is None:
        return None
    owner = f"field manager {manager}"
    fix = "let it ignore spec.replicas, or remove it from owners"
    return TargetRefusal(owner, f"{owner} keeps writing spec.replicas: {fix}")


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name matches one of the patterns, in which `*` matches any text and nothing else is special."""
    return any(re.fullmatch(".*".join(map(re.escape, each.split("*"))), name, re.DOTALL) for each in patterns)
