"""The filters that depend only on the node, and not on its pods: cordons, names, taints, affinity.

There is one verdict for all equivalent nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, TaintEffect
from adapter.foundation.cluster.values.state import Taint
from recommender.kinds.cluster_size.predicates.node_affinity import (
    affinity_refusals,
    mentioned_keys,
    mentions_names,
    named_nodes,
    unnamed_refusals,
)
from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal
from recommender.kinds.cluster_size.predicates.taint_toleration import is_tolerated, taint_refusals

if TYPE_CHECKING:
    from collections.abc import Hashable

    from adapter.foundation.cluster.values.constraints import PodScheduling, Toleration
    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo


CORDON_TAINT: Final = Taint("node.kubernetes.io/unschedulable", "", TaintEffect.NO_SCHEDULE)
"""The taint that a pod must tolerate to run on a cordoned node, whether or not the node has it yet."""

_CORDONED: Final = (Refusal("NodeUnschedulable", "node(s) were unschedulable"),)


def unschedulable_refusals(node: ClusterNode, tolerations: tuple[Toleration, ...]) -> tuple[Refusal, ...]:
    """Return why a node takes no new pods; empty if it does, or if the pod tolerates the taint of cordoned nodes."""
    return _CORDONED if node.unschedulable and not is_tolerated(CORDON_TAINT, tolerations) else ()


class StaticFilter:
    """NodeUnschedulable, TaintToleration and NodeAffinity for the constraints of one shape.

    Nodes that have the same values of all labels that the constraints mention, and the same taints, are judged once.
    """

    def __init__(self, scheduling: PodScheduling) -> None:
        terms = scheduling.node_terms or ()
        keys = mentioned_keys(terms) | {key for key, _ in scheduling.node_selector}
        self.names = named_nodes(scheduling)
        self._scheduling = scheduling
        self._keys = tuple(sorted(keys))
        self._by_name = mentions_names(terms)
        self.reads_names = self._by_name or HOSTNAME_LABEL in keys
        """Whether the verdict depends on the name or hostname of the node."""
        self._verdicts: dict[Hashable, tuple[Refusal, ...]] = {}

    def refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        """Return the refusals by the first filter that refuses the node."""
        found = info.verdicts.get(self)
        return self._cached_refusals(info) if found is None else found

    def _cached_refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        node = info.node
        alike = (
            tuple(map(node.labels.get, self._keys)),
            node.taints,
            node.unschedulable,
            node.name if self._by_name else "",
        )
        verdict = self._verdicts.get(alike)
        if verdict is None:
            verdict = self._verdicts[alike] = self._verdict(node)
        info.verdicts[self] = verdict
        return verdict

    def _verdict(self, node: ClusterNode) -> tuple[Refusal, ...]:
        scheduling = self._scheduling
        return (
            unnamed_refusals(node, self.names)
            or unschedulable_refusals(node, scheduling.tolerations)
            or taint_refusals(node, scheduling.tolerations)
            or affinity_refusals(node, scheduling)
        )
