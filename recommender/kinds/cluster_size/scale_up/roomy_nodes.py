"""Finds which of thousands of nodes may have room for a pod, by arrays of their free resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.pod_requests import CPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape

_RESOURCES: Final = (CPU, MEMORY)


class RoomyNodes:
    """Nodes with the free CPU and memory of each when this object was created.

    As long as pods are only added, a node has no more free than that, so a skipped node has no room.
    """

    def __init__(self, nodes: Sequence[NodeInfo]) -> None:
        self._nodes = nodes
        self._left = {
            resource: [info.allocatable.get(resource, 0) - info.requested.get(resource, 0) for info in nodes]
            for resource in _RESOURCES
        }

    def of(self, shape: PodShape) -> Sequence[NodeInfo]:
        """Return the nodes that may have the CPU and memory for a pod of the shape, in their order."""
        asked = [(resource, shape.requests[resource]) for resource in _RESOURCES if resource in shape.requests]
        if not asked:
            return self._nodes
        numbers: Sequence[int] = range(len(self._nodes))
        for resource, amount in asked:
            left = self._left[resource]
            numbers = [number for number in numbers if left[number] >= amount]
        return [self._nodes[number] for number in numbers]
