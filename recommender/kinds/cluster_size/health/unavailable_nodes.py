"""Names the nodes that take no pods now: not ready, cordoned, starting, tainted for good, or being deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.constraints import TaintEffect
from recommender.kinds.cluster_size.health.starting_nodes import starting_nodes
from recommender.kinds.cluster_size.model.pod_places import NodeState, UnavailableNode
from recommender.kinds.cluster_size.scale_down.removal_candidates import nodes_being_deleted

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.model.taints import PassingTaints


def unavailable_nodes(situation: ClusterSituation, settings: ClusterSizeSettings) -> tuple[UnavailableNode, ...]:
    """Return the nodes that take no pods now, in the order of the cluster, each with its most permanent state."""
    deleting = nodes_being_deleted(situation)
    starting = starting_nodes(situation, settings)
    found: list[UnavailableNode] = []
    for node in situation.nodes:
        group = situation.groups.group_of.get(node.name, "")
        if node.name in deleting:
            found.append(UnavailableNode(node.name, group, NodeState.DELETING))
        elif node.unschedulable:
            found.append(UnavailableNode(node.name, group, NodeState.CORDONED))
        elif node.name in starting:
            found.append(UnavailableNode(node.name, group, NodeState.STARTING, starting[node.name]))
        elif not node.ready:
            found.append(UnavailableNode(node.name, group, NodeState.NOT_READY))
        elif taint := _lasting_taint(node, settings.passing_taints):
            detail = f"it has the start-up taint {taint}, and is older than maxNodeProvisionTime"
            found.append(UnavailableNode(node.name, group, NodeState.TAINTED, detail))
    return tuple(found)


def _lasting_taint(node: ClusterNode, passing: PassingTaints) -> str:
    """Return the start-up taint that keeps pods from a node that should have started; empty if there is none."""
    keeping = (taint for taint in node.taints if taint.effect in set(TaintEffect))
    return next((taint.key for taint in keeping if passing.is_startup(taint)), "")
