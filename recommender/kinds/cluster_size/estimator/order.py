"""The order in which an estimate takes pod groups: those with the largest pods first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.pod_requests import CPU, MEMORY, units_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.estimator.estimate_model import PodGroup


def ordered(groups: Iterable[PodGroup], node: ClusterNode) -> tuple[PodGroup, ...]:
    """Return the groups by the score of one pod on the node, highest first; equal ones stay in their order."""
    allocatable = {
        resource: units_of(resource, node.allocatable[resource])
        for resource in (CPU, MEMORY)
        if resource in node.allocatable
    }
    return tuple(sorted(groups, key=lambda group: -_score(group, allocatable)))


def _score(group: PodGroup, allocatable: dict[str, int]) -> float:
    """Return `cpu / allocatable cpu + memory / allocatable memory` of one pod.

    The sum is that of Cluster Autoscaler's decreasing order; a resource that the node does not have adds nothing.
    """
    requests = group.shape.requests
    return sum(requests.get(resource, 0) / amount for resource, amount in allocatable.items() if amount > 0)
