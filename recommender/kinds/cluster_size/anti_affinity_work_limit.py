"""Limits the anti-affinity terms of bound pods that one decision evaluates, so that it finishes for all tenants.

A term that demands a value of a label, as nearly all do, is looked up by that label and costs next to nothing. All
other terms are evaluated for each pod that needs a place. Pods whose terms exceed the limit are assumed to exclude
every pod that those terms could match, so no pod is placed in violation of a term; and their nodes stay.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.values.constraints import PodTerm
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.model.fair_shares import beyond_shares
from recommender.kinds.cluster_size.predicates.selector_index import index_keys_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod

MOST_ASKED_TERMS: Final = 500
"""The most distinct terms that are evaluated for each pod."""
MOST_FOUND_TERMS: Final = 20_000
"""The most distinct terms that are looked up by a label."""
_MOST_BY_LABEL: Final = 50
"""The most terms of one namespace that may be looked up by one label. Further ones are evaluated so often that they
count as evaluated for each pod."""
_ORDINARY_VALUES: Final = 32
"""The most values of a term whose cost is 1; each further group of this many values adds 1 to the cost."""
_MOST_NAMED: Final = 5
BEYOND: Final = (
    "has more anti-affinity terms, with the other pods of its namespace, than one decision looks at: it counts as "
    "against every pod that they can concern"
)

_Owner: TypeAlias = "tuple[str, tuple[PodTerm, ...]]"
"""A namespace, and the anti-affinity terms that some of its pods have in common."""


@dataclass(frozen=True, slots=True)
class BoundTerms:
    """The pods, with their anti-affinity terms limited to what one decision evaluates."""

    pods: tuple[ClusterPod, ...]
    notes: tuple[str, ...]
    """Notes on the namespaces whose pods' terms exceed the limit."""


def within_term_bound(pods: tuple[ClusterPod, ...], nodes: Iterable[ClusterNode]) -> BoundTerms:
    """Return all pods in order; bound pods whose terms exceed the limit get fewer, wider terms instead.

    `nodes` are all existing nodes and those that may be added: a term excludes nothing if none of them has its topology
    key.
    """
    # A call of `_owner` for each of hundreds of thousands of pods takes longer than the rest of this function.
    with_terms = [pod for pod in pods if pod.node and pod.facts is not None and pod.facts.scheduling.anti_affinity]
    owners = {owner: None for pod in with_terms if (owner := _owner(pod)) is not None}
    beyond = _beyond(sorted(owners, key=lambda owner: len(owner[1])))
    if not beyond:
        return BoundTerms(pods, ())
    keys = frozenset(key for node in nodes for key in node.labels)
    wider = {owner: _wider(owner, keys) for owner in beyond}
    counted = Counter(owner[0] for pod in with_terms if (owner := _owner(pod)) in wider)
    notes = tuple(
        f"namespace {namespace}: {count_of(count, 'bound pod')} {'have' if count > 1 else 'has'} more anti-affinity "
        "terms than one decision looks at: they count as against every pod that they can concern, and their nodes stay"
        for namespace, count in counted.most_common(_MOST_NAMED)
    )
    return BoundTerms(tuple(_with_wider_terms(pod, wider) for pod in pods), notes)


def _owner(pod: ClusterPod) -> _Owner | None:
    if not pod.node or pod.has_ended or pod.facts is None or not pod.facts.scheduling.anti_affinity:
        return None
    return pod.namespace, pod.facts.scheduling.anti_affinity


def _with_wider_terms(pod: ClusterPod, wider: Mapping[_Owner, tuple[PodTerm, ...]]) -> ClusterPod:
    owner = _owner(pod)
    if owner is None or owner not in wider or pod.facts is None:
        return pod
    scheduling = replace(pod.facts.scheduling, anti_affinity=wider[owner])
    return replace(pod, facts=replace(pod.facts, scheduling=scheduling, problem=pod.facts.problem or BEYOND))


def _beyond(owners: list[_Owner]) -> list[_Owner]:
    crowds: defaultdict[object, set[PodTerm]] = defaultdict(set)
    asked: list[tuple[str, int]] = []
    found: list[tuple[str, int]] = []
    for namespace, terms in owners:
        costs = Counter[bool]()
        for term in terms:
            costs[_is_found(namespace, term, crowds)] += _cost(term)
        asked.append((namespace, costs[False]))
        found.append((namespace, costs[True]))
    numbers = beyond_shares(asked, MOST_ASKED_TERMS) | beyond_shares(found, MOST_FOUND_TERMS)
    return [owners[number] for number in sorted(numbers)]


def _is_found(namespace: str, term: PodTerm, crowds: defaultdict[object, set[PodTerm]]) -> bool:
    """Return whether the term is looked up by a label that few other terms share."""
    if term.selector is None:
        return True
    for place in index_keys_of(term.selector, term.namespaces if term.namespace_selector is None else None):
        crowd = crowds[namespace, place]
        crowd.add(term)
        if place[1] is None or len(crowd) > _MOST_BY_LABEL:
            return False
    return True


def _cost(term: PodTerm) -> int:
    selectors = (term.selector, term.namespace_selector)
    values = sum(1 + len(each.values) for one in selectors if one is not None for each in one.requirements)
    return 1 + (values + len(term.namespaces)) // _ORDINARY_VALUES


def _wider(owner: _Owner, keys: frozenset[str]) -> tuple[PodTerm, ...]:
    """Return one term per topology key that a node has; it excludes all pods of the namespaces that the terms cover."""
    terms = [term for term in owner[1] if term.selector is not None and term.topology_key in keys]
    namespaces = frozenset[str]().union(*(term.namespaces for term in terms))
    selector = EVERYTHING if any(term.namespace_selector is not None for term in terms) else None
    return tuple(
        PodTerm(key, EVERYTHING, namespaces, selector) for key in dict.fromkeys(term.topology_key for term in terms)
    )
