"""Determines which nodes count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.node_counts import NodeCounts, count_nodes
from adapter.foundation.cluster.values.virtual_nodes import is_virtual

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.foundation.objects.selectors import Selector
    from recommender.kinds.proportional.parameters import NodeFilter


class LastCounts:
    """Counts nodes again only when they have changed, since there are more polls than changes. Not thread-safe."""

    def __init__(self) -> None:
        self._of: Sequence[ClusterNode] | None = None
        self._counts: NodeCounts | None = None

    def counted(
        self, nodes: Sequence[ClusterNode], node_filter: NodeFilter, selector: Selector, now: float
    ) -> NodeCounts:
        """Return what the function `counted` returns; each call must have the same filter.

        Nodes count as unchanged if they are the same object.
        """
        if self._counts is None or nodes is not self._of or node_filter.min_node_age_seconds:
            self._of, self._counts = nodes, filtered_counts(nodes, node_filter, selector, now)
        return self._counts


def filtered_counts(
    nodes: Sequence[ClusterNode], node_filter: NodeFilter, selector: Selector, now: float
) -> NodeCounts:
    """Return the counts of the nodes that pass the filter; `selector` is the filter's parsed selector.

    `now` is in Unix seconds.
    """
    if node_filter.ignore_virtual_nodes:
        nodes = [node for node in nodes if not is_virtual(node)]
    if node_filter.min_node_age_seconds:
        newest = now - node_filter.min_node_age_seconds
        nodes = [node for node in nodes if node.created is None or node.created <= newest]
    return count_nodes(nodes, selector, node_filter.ignore_taints)
