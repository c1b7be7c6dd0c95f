"""Determines how far the cluster may shrink: the smallest sizes of groups, and the fewest cores and bytes of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.virtual_nodes import is_of_virtual_kubelet
from adapter.foundation.objects.amount_texts import amount_text
from adapter.foundation.objects.pod_requests import CPU, MEMORY, units_of
from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.scale_down.reasons import KeepReason

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.size_settings import SizeLimits


_CORES: Final = "cores"
_MEMORY: Final = "of memory"
_AMOUNTS: Final[Mapping[str, Callable[[ClusterNode], int]]] = {
    _CORES: lambda node: -(-units_of(CPU, node.capacity[CPU]) // 1000) if CPU in node.capacity else 0,
    _MEMORY: lambda node: units_of(MEMORY, node.capacity[MEMORY]) if MEMORY in node.capacity else 0,
}
"""The limited amounts of a node, as messages name them: cores, rounded up, and bytes of memory."""


class Minimums:
    """The nodes that may still be removed after those removed so far. It belongs to one decision."""

    def __init__(self, groups: Mapping[str, NodeGroup], nodes: Collection[ClusterNode], limits: SizeLimits) -> None:
        """`nodes` are all nodes that stay for now, including those outside groups but without those being deleted."""
        self._groups = groups
        self._sizes = {name: group.sure_size for name, group in groups.items()}
        stated = {_CORES: limits.min_cores, _MEMORY: limits.min_memory_bytes}
        self._least = {what: least for what, least in stated.items() if least}
        machines = [node for node in nodes if not is_of_virtual_kubelet(node)] if self._least else []
        self._totals = {what: sum(map(_AMOUNTS[what], machines)) for what in self._least}

    def is_smallest(self, group: str) -> bool:
        """Return whether no node of the group may be removed."""
        return self._sizes[group] <= self._groups[group].min_size

    def refusal(self, group: str, nodes: Sequence[ClusterNode]) -> tuple[KeepReason, str] | None:
        """Return why these nodes of one group may not be removed together; None if they may."""
        size, least = self._sizes[group], self._groups[group].min_size
        if size - len(nodes) < least:
            detail = (
                f"the node group {group} has {count_of(size, 'node')} without the nodes being removed, "
                f"and its minimum is {least}"
            )
            return KeepReason.NODE_GROUP_MIN_SIZE_REACHED, detail
        for what, least in self._least.items():
            taken, total = sum(map(_AMOUNTS[what], nodes)), self._totals[what]
            if taken > max(0, total - least):
                removed, there, stays = (_text(what, amount) for amount in (taken, total, least))
                detail = f"{removed} of {there} {what} would be removed, and the minimum is {stays}"
                return KeepReason.MINIMAL_RESOURCE_LIMIT_EXCEEDED, detail
        return None

    def take(self, group: str, nodes: Sequence[ClusterNode]) -> None:
        """Count nodes of a group as removed."""
        self._sizes[group] -= len(nodes)
        for what in self._totals:
            self._totals[what] -= sum(map(_AMOUNTS[what], nodes))


def _text(what: str, amount: int) -> str:
    return amount_text(MEMORY, amount, rounds_up=False) if what == _MEMORY else str(amount)
