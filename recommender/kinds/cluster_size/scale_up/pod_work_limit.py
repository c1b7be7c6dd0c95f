"""Determines how many different pods one decision considers, so that it finishes whatever pods a tenant creates.

Equivalent pods cost as much as one. Every different pod is checked against every node, and a pod that depends on others
also against all such pods. A pod with many terms, values and labels costs as much as several. Cluster Autoscaler bounds
its time instead (`max-binpacking-time`); a bound of the work gives the same answer on every machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.objects.grouping import group_values
from recommender.kinds.cluster_size.model.fair_shares import beyond_shares

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.state import ClusterPod
    from adapter.foundation.objects.requirements import Requirement
    from adapter.foundation.objects.selectors import Selector
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot

MOST_SHAPES: Final = 2000
"""The most different pods of ordinary size that are considered; fewer on clusters with more than 2,500 nodes."""
MOST_RELATED_SHAPES: Final = 300
"""The most different pods with affinity, anti-affinity or spread constraints that are considered."""
_MOST_QUESTIONS: Final = 5_000_000
_LEAST_SHAPES: Final = 500
_ORDINARY_PARTS: Final = 32
"""A pod with this many terms, values and labels costs as much as one; each further group of this size adds that
cost."""
NOT_LOOKED_AT: Final = (
    "it has not been evaluated yet: so many different pods are pending that those of its namespace take turns"
)

_Alike: TypeAlias = "tuple[PodShape, list[ClusterPod]]"


def within_bound(pods: Iterable[ClusterPod], snapshot: Snapshot) -> tuple[list[ClusterPod], list[ClusterPod]]:
    """Return the pods that this decision considers, and those that it does not, in order.

    If there are too many, each namespace has the same share of the work, and pods of a higher priority come first in
    it.
    """
    order = list(pods)
    shapes = dict.fromkeys(map(snapshot.shape, order))
    if sum(map(cost_of, shapes)) <= MOST_RELATED_SHAPES:  # the smaller limit, within which most clusters are
        return order, []
    alike = group_values((snapshot.shape(pod), pod) for pod in sorted(order, key=lambda pod: -pod.priority))
    plain = [one for one in alike.items() if not _is_related(one[0])]
    related = [one for one in alike.items() if _is_related(one[0])]
    most = min(MOST_SHAPES, max(_LEAST_SHAPES, _MOST_QUESTIONS // max(1, len(snapshot.nodes))))
    beyond = {id(pod) for pod in (*_beyond(plain, most), *_beyond(related, MOST_RELATED_SHAPES))}
    return [pod for pod in order if id(pod) not in beyond], [pod for pod in order if id(pod) in beyond]


def _is_related(shape: PodShape) -> bool:
    constraints = shape.scheduling
    return bool(constraints.affinity or constraints.anti_affinity or constraints.spread)


def without_a_turn(beyond: Iterable[ClusterPod], looked_at: Iterable[ClusterPod]) -> int:
    """Return how many of the pods beyond the bound belong to namespaces of which no pod was looked at.

    The others are beyond it because their own namespace has used up its share, so no other namespace has to wait for
    them.
    """
    heard = {pod.namespace for pod in looked_at}
    return sum(pod.namespace not in heard for pod in beyond)


def cost_of(shape: PodShape) -> int:
    """Return what a shape costs, in pods of ordinary size."""
    return 1 + _constraint_count(shape) // _ORDINARY_PARTS


def _constraint_count(shape: PodShape) -> int:
    constraints = shape.scheduling
    count = len(shape.labels) + len(constraints.node_selector) + len(constraints.tolerations)
    for node_term in constraints.node_terms or ():
        count += 1 + _values(node_term.labels) + len(node_term.name_in or ()) + len(node_term.name_not_in)
    for term in (*constraints.affinity, *constraints.anti_affinity):
        count += 1 + len(term.namespaces) + _selected_count(term.selector) + _selected_count(term.namespace_selector)
    return count + sum(1 + _selected_count(each.selector) for each in constraints.spread)


def _selected_count(selector: Selector | None) -> int:
    return 0 if selector is None else _values(selector.requirements)


def _values(requirements: Iterable[Requirement]) -> int:
    return sum(1 + len(each.values) for each in requirements)


def _beyond(alike: list[_Alike], most: int) -> list[ClusterPod]:
    """Return the pods of the shapes beyond the bound, within which namespaces take equal turns."""
    beyond = beyond_shares(((shape.namespace, cost_of(shape)) for shape, _ in alike), most)
    return [pod for number, (_, pods) in enumerate(alike) if number in beyond for pod in pods]
