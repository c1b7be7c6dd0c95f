"""Determines how far the cluster may shrink: the smallest sizes of groups, and the fewest cores and bytes of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.amount_texts import amount_text
from adapter.foundation.objects.pod_requests import CPU, MEMORY, units_of
from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.scale_down.reasons import KeepReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.size_settings import SizeLimits


def _memory_text(amount_bytes: int) -> str:
    return amount_text(MEMORY, amount_bytes, rounds_up=False)


def _remainder(total: int, least: int) -> int:
    """Return how much of a resource may be removed if `least` must stay."""
    return max(0, total - least)


class Minimums:
    """The nodes that may still be removed after those removed so far. It belongs to one decision."""

    def __init__(self, groups: Mapping[str, NodeGroup], nodes: Iterable[ClusterNode], limits: SizeLimits) -> None:
        """`nodes` are all nodes that stay for now, including those outside groups but without those being deleted."""
        self._groups = groups
        self._limits = limits
        self._sizes = {name: group.sure_size for name, group in groups.items()}
        self._cores = self._memory = 0
        if limits.min_cores or limits.min_memory_bytes:
            for node in nodes:
                cores, memory = _resources(node)
                self._cores += cores
                self._memory += memory

    def is_smallest(self, group: str) -> bool:
        """Return whether no node of the group may be removed."""
        return self._sizes[group] <= self._groups[group].min_size

    def refusal(self, group: str, nodes: Sequence[ClusterNode]) -> tuple[KeepReason, str] | None:
        """Return why these nodes of one group may not be removed together; None if they may."""
        size, least = self._sizes[group], self._groups[group].min_size
        if size - len(nodes) < least:
            return (
                KeepReason.NODE_GROUP_MIN_SIZE_REACHED,
                (
                    f"the node group {group} has {count_of(size, 'node')} without the nodes being removed, "
                    f"and its minimum is {least}"
                ),
            )
        taken = [_resources(node) for node in nodes] if self._limits.min_cores or self._limits.min_memory_bytes else []
        cores, memory = sum(one[0] for one in taken), sum(one[1] for one in taken)
        if self._limits.min_cores and cores > _remainder(self._cores, self._limits.min_cores):
            detail = f"{cores} of {self._cores} cores would be removed, and the minimum is {self._limits.min_cores}"
            return KeepReason.MINIMAL_RESOURCE_LIMIT_EXCEEDED, detail
        if self._limits.min_memory_bytes and memory > _remainder(self._memory, self._limits.min_memory_bytes):
            least = self._limits.min_memory_bytes
            detail = (
                f"{_memory_text(memory)} of {_memory_text(self._memory)} of memory would be removed, "
                f"and the minimum is {_memory_text(least)}"
            )
            return KeepReason.MINIMAL_RESOURCE_LIMIT_EXCEEDED, detail
        return None

    def take(self, group: str, nodes: Sequence[ClusterNode]) -> None:
        """Count nodes of a group as removed."""
        self._sizes[group] -= len(nodes)
        if self._limits.min_cores or self._limits.min_memory_bytes:
            for node in nodes:
                cores, memory = _resources(node)
                self._cores -= cores
                self._memory -= memory


def _resources(node: ClusterNode) -> tuple[int, int]:
    """Return the cores of a node, rounded up, and its bytes of memory."""
    milli = units_of(CPU, node.capacity[CPU]) if CPU in node.capacity else 0
    memory = units_of(MEMORY, node.capacity[MEMORY]) if MEMORY in node.capacity else 0
    return -(-milli // 1000), memory
