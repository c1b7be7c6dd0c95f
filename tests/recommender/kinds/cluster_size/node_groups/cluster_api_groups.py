"""Node groups of Cluster API, discovered from objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recommender.kinds.cluster_size.model.size_settings import ClusterApiGroups, NodeGroupSources
from recommender.kinds.cluster_size.node_groups.discover import node_groups
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import ALL, BOUNDS, CAPACITY, MIN, state

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode, ObjectKind
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups
    from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import Json


NODES = (node("n1"), node("n2"))
NAME = "MachineDeployment/capi/workers"


def found(
    *objects: Json,
    nodes: tuple[ClusterNode, ...] = NODES,
    stated: ClusterApiGroups = ALL,
    more: dict[ObjectKind, Any] | None = None,
) -> NodeGroups:
    return node_groups(NodeGroupSources(cluster_api=stated), state(*objects, nodes=nodes, more=more), 1000.0)


def only(groups: NodeGroups) -> NodeGroup:
    (group,) = groups.groups
    return group


FROM_ZERO = {
    **BOUNDS,
    MIN: "0",
    f"{CAPACITY}cpu": "16",
    f"{CAPACITY}memory": "128G",
    f"{CAPACITY}ephemeral-disk": "100Gi",
    f"{CAPACITY}gpu-type": "nvidia.com/gpu",
    f"{CAPACITY}gpu-count": "2",
    f"{CAPACITY}labels": "zone=a,node-role.kubernetes.io/gpu=",
    f"{CAPACITY}taints": "gpu=yes:NoSchedule,burst:NoExecute",
}
