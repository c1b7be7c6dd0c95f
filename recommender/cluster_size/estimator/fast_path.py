"""Which group Cluster Autoscaler would pack by arithmetic alone (`--fastpath-binpacking-enabled`).

Its fast path packs one node and divides the other pods by what that node holds. It pays most for the group that saves
the most simulations. Estimates here divide for every group of which the pods do not influence each other, so the choice
serves comparisons alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.cluster.scheduling.constraints import HOSTNAME_LABEL
from adapter.objects.pod_requests import CPU, MEMORY, units_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.cluster.predicates.shapes import PodShape
    from adapter.cluster.state import ClusterNode
    from recommender.cluster_size.estimator.model import PodGroup


def fast_path_choice(groups: Sequence[PodGroup], node: ClusterNode) -> int | None:
    """Return the index of the group with the most `pods - pods // nodes`, the last one of equals; None if none suits.

    `nodes` is how many empty nodes the pods would fill by CPU or memory alone.
    """
    best, most_saved = None, 0
    for index, group in enumerate(groups):
        saved = _saved_simulations(group, node)
        if saved >= most_saved and _suits(group.shape):
            best, most_saved = index, saved
    return best


def _saved_simulations(group: PodGroup, node: ClusterNode) -> int:
    count = len(group.pods)
    nodes = max(_nodes_for(group, node, CPU), _nodes_for(group, node, MEMORY), count * _repels_itself(group.shape))
    return count - count // nodes if nodes else 0


def _nodes_for(group: PodGroup, node: ClusterNode, resource: str) -> int:
    capacity = units_of(resource, node.capacity[resource]) if resource in node.capacity else 0
    return -(-len(group.pods) * group.shape.requests.get(resource, 0) // capacity) if capacity else 0


def _repels_itself(shape: PodShape) -> bool:
    """Whether a node takes one pod at most."""
    return any(
        term.topology_key == HOSTNAME_LABEL and term.selector is not None and term.selector.matches(shape.labels)
        for term in shape.scheduling.anti_affinity
    )


def _suits(shape: PodShape) -> bool:
    """Whether each further node takes as many pods as the first one."""
    scheduling = shape.scheduling
    return not scheduling.spread and all(term.topology_key == HOSTNAME_LABEL for term in scheduling.anti_affinity)
