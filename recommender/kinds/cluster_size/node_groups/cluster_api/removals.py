"""Selects the Machines to delete, as Cluster API documents: each is marked, and the size falls by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Unknown
from recommender.kinds.cluster_size.node_groups import watched_kinds as kinds
from recommender.kinds.cluster_size.node_groups.cluster_api.machines import members_of
from recommender.kinds.cluster_size.node_groups.cluster_api.scalables import group_name, is_rolling_out
from recommender.kinds.cluster_size.node_groups.fields import text
from recommender.kinds.cluster_size.node_groups.watched_kinds import objects_of
from recommender.outputs.wishes import MachineRemoval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterState, JsonObject
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.size_settings import ClusterApiGroups
    from recommender.outputs.wishes import NodeRemoval

DELETE_MARK: Final = f"{kinds.CLUSTER_API_GROUP}/delete-machine"
"""The annotation of Machines that are deleted first when the size of their group is lowered."""


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """The Machines or nodes of one group to remove."""

    machines: tuple[MachineRemoval, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    """Why a node is not removed, by node."""
    nodes: tuple[NodeRemoval, ...] = ()
    """The nodes of a provider's group, which has no Machines."""


def plan_removals(
    group: NodeGroup, nodes: Iterable[str], stated: ClusterApiGroups, cluster: ClusterState
) -> RemovalPlan:
    """Return the Machines of nodes to remove, in order, as far as the group may become smaller."""
    wanted = tuple(nodes)
    reason = _reason_against(group, stated, cluster)
    if reason:
        return RemovalPlan(kept=dict.fromkeys(wanted, reason))
    machines = _machines(group, stated, cluster)
    found: list[MachineRemoval] = []
    kept: dict[str, str] = {}
    for node in wanted:
        machine = machines.get(node)
        if machine is None:
            kept[node] = "there is no Machine for it"
        elif text(machine, "metadata", "deletionTimestamp"):
            kept[node] = "its Machine is being deleted already"
        elif group.target_size - len(found) <= group.min_size:
            kept[node] = f"the group has a minimum of {group.min_size}"
        else:
            found.append(
                MachineRemoval(text(machine, "metadata", "namespace"), text(machine, "metadata", "name"), node)
            )
    return RemovalPlan(tuple(found), kept)


def _reason_against(group: NodeGroup, stated: ClusterApiGroups, cluster: ClusterState) -> str:
    if not stated.mark_machines:
        return "clusterAPI.markMachines is off, so removals are only recommended"
    if group.scalable is None or group.scalable.kind == "MachinePool":
        return (
            ("the machines of a MachinePool cannot be chosen")
            if group.scalable
            else "it is not a node group of Cluster API"
        )
    if group.problem or group.paused or group.autoscaler:
        return group.problem or group.paused or f"{group.autoscaler} manages the group"
    objects = objects_of(cluster.objects, *kinds.scalable_kinds(group.scalable.kind, stated))
    if any(group_name(one) == group.name and is_rolling_out(one) for one in objects):
        return "the group is rolling out a new version"
    return ""


def _machines(group: NodeGroup, stated: ClusterApiGroups, cluster: ClusterState) -> Mapping[str, JsonObject | None]:
    """Return the Machines of a group by node."""
    if isinstance(cluster.nodes, Unknown) or group.scalable is None:
        return {}
    found = members_of(
        objects_of(cluster.objects, *kinds.machines(stated)),
        objects_of(cluster.objects, *kinds.scalable_kinds("MachineSet", stated)),
        (),
        {node.name: node for node in cluster.nodes.value},
    )
    of = group.scalable
    members = found.get((of.kind, of.namespace, of.name))
    return {} if members is None else members.nodes
