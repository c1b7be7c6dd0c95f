"""Doubts an empty first list of objects if earlier decisions, even in another process, knew such objects.

A process that has just started knows no objects that the list could lack, so its watch accepts the list. But the memory
of the recommendation contains the number of objects that were known: if there were any, the fact counts as unknown
until a second list agrees (`list_checks.CONFIRM_SECONDS`).
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
"""The names of facts in a memory that differ between targets; all other facts are the same for all targets."""


def unless_doubted(what: str, fact: Observed[T] | Unknown, known: Mapping[str, int]) -> Observed[T] | Unknown:
    """Return the fact, or Unknown if it began with an empty first list although such objects were known before."""
    before = known.get(what, 0)
    if isinstance(fact, Unknown) or not fact.began_empty or not before:
        return fact
    reason = f"the first list since the start was empty, and {before} {what} were known before"
    return Unknown(f"{reason}: a second list has to agree", is_awaited=True)


def known_now(
    what: str, fact: Observed[T] | Unknown | None, number: int, known: Mapping[str, int]
) -> Mapping[str, int]:
    """Return the memory of known objects with the current number, or unchanged if no list has confirmed that number."""
    if not isinstance(fact, Observed) or fact.began_empty or known.get(what, 0) == number:
        return known
    others = {name: count for name, count in known.items() if name != what}
    return {**others, what: number} if number else others


def with_believed_owners(policy: RecommendationPolicy, inputs: Inputs, known: Mapping[str, int]) -> Inputs:
    """Return the inputs with doubted empty lists of HPAs and ScaledObjects replaced by Unknown (`unless_doubted`)."""
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
    return {**owners, **{namespace: unless_doubted(what, fact, known) for namespace, fact in facts.items()}}


def with_known_owners(policy: RecommendationPolicy, inputs: Inputs, known: Mapping[str, int]) -> Mapping[str, int]:
    """Return the memory with the current number of HPAs and ScaledObjects of the targets, if their size is written."""
    if Output.SCALE not in policy.outputs:
        return known
    for target in policy.targets:
        for what, facts in ((OWNERS, inputs.cluster.autoscalers), (SCALED_OBJECTS, inputs.scaled_objects)):
            fact = facts.get(target.namespace)
            owners = sum(is_target_of(each, target) for each in fact.value) if isinstance(fact, Observed) else 0
            known = known_now(what, fact, owners, known)
    return known


def shared_facts(known: Mapping[str, int]) -> Mapping[str, int]:
    """Return those known facts in the memory of a target that are the same for all targets."""
    return {what: number for what, number in known.items() if what not in _OF_TARGETS}
