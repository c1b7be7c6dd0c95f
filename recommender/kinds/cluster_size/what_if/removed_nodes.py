"""Node groups without the nodes that a what-if question removes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Observed

if TYPE_CHECKING:
    from collections.abc import Collection

    from adapter.foundation.cluster.values.state import ClusterState
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups


def node_names(cluster: ClusterState) -> frozenset[str]:
    """Return the names of the nodes of a cluster; none if they are not known."""
    return frozenset(node.name for node in cluster.nodes.value) if isinstance(cluster.nodes, Observed) else frozenset()


def without_nodes(groups: NodeGroups, removed: Collection[str]) -> NodeGroups:
    """Return the groups, whose sizes no longer count the removed nodes.

    The groups must be those of the cluster with these nodes: without them, a Machine or an instance of a removed node
    would seem to be missing, and a group might have no node to make a template from.
    """
    if not removed:
        return groups
    return replace(
        groups,
        groups=tuple(_smaller_group(group, removed) for group in groups.groups),
        group_of={node: name for node, name in groups.group_of.items() if node not in removed},
    )


def _smaller_group(group: NodeGroup, removed: Collection[str]) -> NodeGroup:
    nodes = tuple(node for node in group.nodes if node not in removed)
    deleting = tuple(node for node in group.deleting if node not in removed)
    gone, left = len(group.nodes) - len(nodes), len(group.deleting) - len(deleting)
    # The size may no longer count nodes that are being deleted.
    uncounted = min(left, max(0, len(group.nodes) - group.target_size))
    return replace(
        group,
        target_size=max(0, group.target_size - gone + uncounted),
        nodes=nodes,
        deleting=deleting,
        joined=max(0, group.joined - gone + left),
    )
