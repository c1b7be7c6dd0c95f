"""Determines which facts are doubted after a start, because the memory knows objects that their lists lack."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.cluster.values.state import Observed, Unknown
from recommender.decisions.targets.doubted_first_lists import known_now, unless_doubted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.cluster.values.state import ClusterState, ObjectKind

_BUDGETS: Final = "PodDisruptionBudgets"


def believed_cluster(cluster: ClusterState, known: Mapping[str, int]) -> ClusterState:
    """Return the facts; a kind is unknown if its first list is empty although the memory knows such objects.

    Without budgets, nodes that they protect would be removed, and without node groups, the time for which nodes have
    been unneeded would be forgotten.
    """
    return replace(
        cluster,
        nodes=unless_doubted("nodes", cluster.nodes, known),
        pods=unless_doubted("pods", cluster.pods, known),
        disruption_budgets=unless_doubted(_BUDGETS, cluster.disruption_budgets, known),
        objects={kind: unless_doubted(_name(kind), fact, known) for kind, fact in cluster.objects.items()},
    )


def known_of(cluster: ClusterState, known: Mapping[str, int]) -> Mapping[str, int]:
    """Return how many objects of each kind are known, for the memory."""
    for what, fact in _facts(cluster):
        known = known_now(what, fact, len(fact.value) if isinstance(fact, Observed) else 0, known)
    return known


def _facts(cluster: ClusterState) -> Iterator[tuple[str, Observed[Any] | Unknown]]:
    yield from (("nodes", cluster.nodes), ("pods", cluster.pods), (_BUDGETS, cluster.disruption_budgets))
    yield from ((_name(kind), fact) for kind, fact in cluster.objects.items())


def _name(kind: ObjectKind) -> str:
    where = "/".join(filter(None, (kind.namespace, kind.name)))
    name = f"{kind.resource}.{kind.group}" if kind.group else kind.resource
    return f"{name} of {where}" if where else name
