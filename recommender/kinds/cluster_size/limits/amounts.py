"""Resources of nodes as whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.pod_requests import units_of
from recommender.kinds.cluster_size.model.size_settings import CORES, MEMORY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.foundation.objects.quantities import Quantity

NODES: Final = "nodes"
_MILLI: Final = 1000


def amounts_of(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    """Return amounts as whole numbers: CPU in millicores, memory and storage in bytes, others as counts."""
    return {resource: units_of(resource, quantity) for resource, quantity in quantities.items()}


def capacity_of(node: ClusterNode) -> dict[str, int]:
    """Return the capacity of a node; resources that it does not state are taken from the allocatable ones."""
    return amounts_of({**node.allocatable, **node.capacity})


def counted_amounts(node: ClusterNode) -> dict[str, int]:
    """Return what a node counts towards limits: cores, rounded up; bytes of memory; other resources; one node."""
    capacity = capacity_of(node)
    counted = {resource: amount for resource, amount in capacity.items() if resource not in {CORES, MEMORY}}
    return counted | {
        CORES: -(-capacity.get(CORES, 0) // _MILLI),
        MEMORY: capacity.get(MEMORY, 0),
        NODES: 1,
    }
