"""Doubts a first list that is empty if earlier decisions, even in another process, knew objects of the cluster.

A process that has just started knows no objects that such a list could lack, so its watch accepts it. The memory of the
recommendation knows them: the fact counts as unknown until a second list agrees (`list_checks.CONFIRM_SECONDS`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from adapter.foundation.cluster.values.state import Autoscaler, Observed, Unknown
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.decisions.targets.owners import is_target_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from recommender.decisions.inputs import Inputs

    OwnersByNamespace: TypeAlias = "Mapping[str, Observed[tuple[Autoscaler, ...]] | Unknown]"

T = TypeVar("T")

OWNERS: Final = "HPAs of the target"
SCALED_OBJECTS: Final = "ScaledObjects of the target"
_OF_TARGETS: Final = (OWNERS, SCALED_OBJECTS)
"""The names of facts in the memory of a target that are its own; all others are the same for all targets."""


def believed(what: str, fact: Observed[T] | Unknown, known: Mapping[str, int]) -> Observed[T] | Unknown:
    """Return the fact; unknown if it follows from an empty first list although the memory knows such objects."""
    before = known.get(what, 0)
    if isinstance(fact, Unknown) or not fact.began_empty or not before:
        return fact
    reason = f"the first list since the start was empty, and {before} {what} were known before"
    return Unknown(f"{reason}: a second list has to agree", is_awaited=True)


def known_now(
    what: str, fact: Observed[T] | Unknown | None, number: int, known: Mapping[str, int]
) -> Mapping[str, int]:
    """Return the number for the memory: one that a list has confirmed, else the former one."""
    if not isinstance(fact, Observed) or fact.began_empty or known.get(what, 0) == number:
        return known
    others = {name: count for name, count in known.items() if name != what}
    return {**others, what: number} if number else others


def with_believed_owners(policy: RecommendationPolicy, inputs: Inputs, known: Mapping[str, int]) -> Inputs:
    """Return the inputs without an answer about HPAs or ScaledObjects that lacks the one that owned the target."""
    if not any(map(known.get, _OF_TARGETS)):
        return inputs
    namespaces = {target.namespace for target in policy.targets}
    autoscalers = _believed_owners(OWNERS, inputs.cluster.autoscalers, namespaces, known)
    scaled_objects = _believed_owners(SCALED_OBJECTS, inputs.scaled_objects, namespaces, known)
    return replace(inputs, cluster=replace(inputs.cluster, autoscalers=autoscalers), scaled_objects=scaled_objects)


def _believed_owners(
    what: str, owners: OwnersByNamespace, namespaces: Iterable[str], known: Mapping[str, int]
) -> OwnersByNamespace:
    facts = {namespace: fact for namespace in namespaces if (fact := owners.get(namespace)) is not None}
    return {**owners, **{namespace: believed(what, fact, known) for namespace, fact in facts.items()}}


def with_known_owners(policy: RecommendationPolicy, inputs: Inputs, known: Mapping[str, int]) -> Mapping[str, int]:
    """Return the new memory of a recommendation with at most one target and its owners."""
    if Output.SCALE not in policy.outputs:
        return known
    for target in policy.targets:
        for what, facts in ((OWNERS, inputs.cluster.autoscalers), (SCALED_OBJECTS, inputs.scaled_objects)):
            fact = facts.get(target.namespace)
            owners = sum(is_target_of(each, target) for each in fact.value) if isinstance(fact, Observed) else 0
            known = known_now(what, fact, owners, known)
    return known


def shared(known: Mapping[str, int]) -> Mapping[str, int]:
    """Return the facts about the cluster in the memory of one target, which are the same for all targets."""
    return {what: number for what, number in known.items() if what not in _OF_TARGETS}
