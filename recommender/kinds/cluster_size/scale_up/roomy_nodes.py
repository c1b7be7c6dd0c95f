"""Which of thousands of nodes may have room for a pod, by columns of what is left on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.objects.pod_requests import CPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo
    from recommender.kinds.cluster_size.predicates.shapes import PodShape

_RESOURCES: Final = (CPU, MEMORY)
_MOST: Final = 2**62
"""Larger amounts count as this one, since a column holds 64 bits."""


class RoomyNodes:
    """Nodes with the CPU and memory that were left on each when this was made.

    As long as pods only come, a node has no more left than that, so a node that is passed over has no room.
    """

    def __init__(self, nodes: Sequence[NodeInfo]) -> None:
        self._nodes = nodes
        self._left = {
            resource: _column(info.allocatable.get(resource, 0) - info.requested.get(resource, 0) for info in nodes)
            for resource in _RESOURCES
        }

    def of(self, shape: PodShape) -> Sequence[NodeInfo]:
        """Return the nodes that may have the CPU and memory for a pod of the shape, in their order."""
        asked = [(resource, shape.requests[resource]) for resource in _RESOURCES if resource in shape.requests]
        if not asked:
            return self._nodes
        has_room = np.ones(len(self._nodes), dtype=np.bool_)
        for resource, amount in asked:
            has_room &= self._left[resource] >= min(amount, _MOST)
        return [self._nodes[number] for number in np.flatnonzero(has_room).tolist()]


def _column(amounts: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.fromiter((max(-_MOST, min(amount, _MOST)) for amount in amounts), dtype=np.int64)
