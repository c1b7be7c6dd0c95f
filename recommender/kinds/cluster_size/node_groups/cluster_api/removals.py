"""Selects the Machines to delete, as Cluster API documents: each is marked, and the size falls by one.

A mark that no smaller size has followed, such as after this process was killed, is found from the objects of the
cluster. If it stayed, the next smaller size, whoever writes it, would delete a node that may hold pods by then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Unknown
from adapter.foundation.objects.grouping import group_values
from recommender.kinds.cluster_size.node_groups import watched_kinds as kinds
from recommender.kinds.cluster_size.node_groups.cluster_api.machines import Members, members_of
from recommender.kinds.cluster_size.node_groups.cluster_api.scalables import group_name, is_rolling_out
from recommender.kinds.cluster_size.node_groups.fields import text
from recommender.kinds.cluster_size.node_groups.watched_kinds import objects_of
from recommender.outputs.pending_writes import MachineRemoval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterState, JsonObject
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.size_settings import ClusterApiGroups
    from recommender.kinds.cluster_size.node_groups.cluster_api.machines import Owned
    from recommender.outputs.pending_writes import MachineToDelete, NodeRemoval

DELETE_MARK: Final = f"{kinds.CLUSTER_API_GROUP}/delete-machine"
"""The annotation of Machines that are deleted first when the size of their group is lowered."""
OWN_MARK: Final = "tidewatch"
"""The value of this program's marks. Cluster Autoscaler writes a time; marks of other programs are left alone."""


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """The Machines or nodes of one group to remove."""

    machines: tuple[MachineRemoval, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    """Why a node is not removed, by node."""
    nodes: tuple[NodeRemoval, ...] = ()
    """The nodes of a provider's group, which has no Machines."""
    stale: tuple[MachineRemoval, ...] = ()
    """The Machines that still have the mark of an earlier removal."""
    failed: tuple[MachineToDelete, ...] = ()
    """The failed machines of a provider's group, which has no Machines."""


def plan_removals(
    group: NodeGroup, nodes: Iterable[str], stated: ClusterApiGroups, cluster: ClusterState
) -> RemovalPlan:
    """Return which Machines are removed for the nodes, in the given order, and why the others are kept.

    No more Machines are removed than the minimum size of the group allows.
    """
    wanted = tuple(nodes)
    reason = _reason_against(group, stated, cluster)
    if reason:
        return RemovalPlan(kept=dict.fromkeys(wanted, reason))
    machines = _members(stated, cluster).get(_identity_of_object(group), Members()).nodes
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
            found.append(_removal(machine, node))
    return RemovalPlan(tuple(found), kept)


def stale_marks(
    groups: Iterable[NodeGroup], stated: ClusterApiGroups, cluster: ClusterState
) -> dict[str, tuple[MachineRemoval, ...]]:
    """Return the Machines that have a mark of this program although no Machine of their group is about to go.

    They are returned by group. While there are more Machines than the size, as after it was lowered or during a
    rollout, a mark may be what Cluster API is about to act on. `markMachines` may be off now, if an earlier
    configuration has made the marks.
    """
    if not any(map(has_own_mark, objects_of(cluster.objects, *kinds.machines(stated)))):
        return {}
    members = _members(stated, cluster)
    found: dict[str, tuple[MachineRemoval, ...]] = {}
    for group in groups:
        machines = members.get(_identity_of_object(group), Members()).machines
        staying = [one for one in machines if not text(one, "metadata", "deletionTimestamp")]
        marked = tuple(_removal(one, node_of(one)) for one in staying if has_own_mark(one))
        is_settled = len(staying) <= group.target_size and not group.problem
        if marked and is_settled and not _is_rolling_out(group, stated, cluster):
            found[group.name] = marked
    return found


def unmarking_command(machines: Iterable[MachineRemoval]) -> str:
    """Return the commands by which a user removes the marks from Machines, one for each namespace."""
    names = group_values((machine.namespace, machine.name) for machine in machines)
    return " and ".join(
        f"`kubectl annotate machines.{kinds.CLUSTER_API_GROUP} -n {namespace} {' '.join(found)} {DELETE_MARK}-`"
        for namespace, found in names.items()
    )


def has_own_mark(machine: JsonObject) -> bool:
    """Return whether a Machine has a mark of this program."""
    return text(machine, "metadata", "annotations", DELETE_MARK) == OWN_MARK


def node_of(machine: JsonObject) -> str:
    """Return the name of the node that a Machine has; empty if it has none yet."""
    return text(machine, "status", "nodeRef", "name")


def _reason_against(group: NodeGroup, stated: ClusterApiGroups, cluster: ClusterState) -> str:
    if not stated.marks_machines:
        return "clusterAPI.markMachines is off, so removals are only recommended"
    if group.scalable is None:
        return "it is not a node group of Cluster API"
    if group.scalable.kind == "MachinePool":
        return "the machines of a MachinePool cannot be chosen"
    if group.problem or group.paused or group.autoscaler:
        return group.problem or group.paused or f"{group.autoscaler} manages the group"
    return "the group is rolling out a new version" if _is_rolling_out(group, stated, cluster) else ""


def _is_rolling_out(group: NodeGroup, stated: ClusterApiGroups, cluster: ClusterState) -> bool:
    objects = objects_of(cluster.objects, *kinds.scalable_kinds(_identity_of_object(group)[0], stated))
    return any(group_name(one) == group.name and is_rolling_out(one) for one in objects)


def _members(stated: ClusterApiGroups, cluster: ClusterState) -> Mapping[Owned, Members]:
    """Return the Machines of all groups that have Machines of their own."""
    if isinstance(cluster.nodes, Unknown):
        return {}
    return members_of(
        objects_of(cluster.objects, *kinds.machines(stated)),
        objects_of(cluster.objects, *kinds.scalable_kinds("MachineSet", stated)),
        (),
        {node.name: node for node in cluster.nodes.value},
    )


def _identity_of_object(group: NodeGroup) -> Owned:
    """Return kind, namespace and name of a group's object; all are empty for a group that has no object."""
    of = group.scalable
    return ("", "", "") if of is None else (of.kind, of.namespace, of.name)


def _removal(machine: JsonObject, node: str) -> MachineRemoval:
    return MachineRemoval(text(machine, "metadata", "namespace"), text(machine, "metadata", "name"), node)
