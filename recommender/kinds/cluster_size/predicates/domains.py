"""The domains among which a spread constraint spreads pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.predicates.node_affinity import is_selected
from recommender.kinds.cluster_size.predicates.taint_toleration import untolerated_taint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.constraints import PodScheduling, SpreadConstraint
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo


class Domains:
    """The values of a topology key on the nodes that count for a constraint, whether or not they can hold the pod.

    A node counts if it has the keys of all constraints of the pod and the policies of the constraint include it. Most
    constraints of a cluster have the same domains, so they share one object.
    """

    def __init__(self, scheduling: PodScheduling, constraint: SpreadConstraint, nodes: Iterable[NodeInfo]) -> None:
        self.values: dict[NodeInfo, str] = {}
        """The domain of each node that belongs to one."""
        self.node_counts: dict[str, int] = {}
        """How many nodes each domain has."""
        self._key = constraint.topology_key
        self._keys = tuple({one.topology_key: None for one in scheduling.spread})
        self._affinity = scheduling if constraint.honors_node_affinity else None
        self._tolerations = scheduling.tolerations if constraint.honors_node_taints else None
        for info in nodes:
            self.add_node(info)

    def add_node(self, info: NodeInfo) -> None:
        """Add a node that has no pods yet."""
        if self._is_included(info):
            value = self.values[info] = info.node.labels[self._key]
            self.node_counts[value] = self.node_counts.get(value, 0) + 1

    def remove_node(self, info: NodeInfo) -> None:
        """Forget a node that has no pods any more."""
        value = self.values.pop(info, None)
        if value is not None:
            self.node_counts[value] -= 1
            if not self.node_counts[value]:
                del self.node_counts[value]

    def _is_included(self, info: NodeInfo) -> bool:
        node = info.node
        if any(key not in node.labels for key in self._keys):
            return False
        if self._affinity is not None and not is_selected(node, self._affinity):
            return False
        return self._tolerations is None or untolerated_taint(node, self._tolerations) is None
