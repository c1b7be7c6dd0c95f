"""Which nodes count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.cluster.nodes import count_nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.cluster.nodes import NodeCounts
    from adapter.cluster.state import ClusterNode
    from adapter.objects.selectors import Selector
    from recommender.proportional.parameters import NodeFilter

_VIRTUAL_LABELS: Final = (("type", "virtual-kubelet"), ("eks.amazonaws.com/compute-type", "fargate"))
_VIRTUAL_TAINTS: Final = frozenset({"virtual-kubelet.io/provider", "eks.amazonaws.com/compute-type"})
"""Taints by which virtual-kubelet's node and EKS's Fargate nodes keep other pods away."""


def is_virtual(node: ClusterNode) -> bool:
    """Return whether the node is one of virtual-kubelet or EKS Fargate: no machine, whatever size it states."""
    for key, value in _VIRTUAL_LABELS:
        if node.labels.get(key) == value:
            return True
    return not _VIRTUAL_TAINTS.isdisjoint(taint.key for taint in node.taints) if node.taints else False


def counted(nodes: Sequence[ClusterNode], node_filter: NodeFilter, selector: Selector, now: float) -> NodeCounts:
    """Return the counts of the nodes that pass the filter, of which `selector` is the parsed selector.

    `now` is in seconds since the Unix epoch.
    """
    if node_filter.ignore_virtual_nodes:
        nodes = [node for node in nodes if not is_virtual(node)]
    if node_filter.min_node_age_seconds:
        newest = now - node_filter.min_node_age_seconds
        nodes = [node for node in nodes if node.created is None or node.created <= newest]
    return count_nodes(nodes, selector, node_filter.ignore_taints)
