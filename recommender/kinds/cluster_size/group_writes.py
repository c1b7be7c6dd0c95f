"""Turns recommended sizes of node groups into writes: what may be written, and why the rest may not. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.node_groups.cluster_api.removals import RemovalPlan
from recommender.outputs.pending_writes import MachineRemoval, MachineToDelete, NodeRemoval, PendingWrite

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.objects.resources import ResolveResource
    from recommender.kinds.cluster_size.model.answer import FailedMachine
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups
    from recommender.kinds.cluster_size.model.size_settings import BufferSettings


@dataclass(frozen=True, slots=True)
class GroupWrites:
    """The sizes to write for node groups."""

    writes: tuple[PendingWrite, ...] = ()
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Why a size that should change is not written, by group."""


@dataclass(frozen=True, slots=True)
class _GroupChange:
    """The size of one group, and what is removed to reach it."""

    size: int
    removals: tuple[MachineRemoval, ...] = ()
    nodes: tuple[NodeRemoval, ...] = ()
    failed: tuple[MachineToDelete, ...] = ()


_NO_PLAN: Final = RemovalPlan()
PROVIDER_API: Final = "tidewatch.io/node-groups"
"""Stands in for the API version if no object holds a group's size; the namespace is then the provider's name."""


def group_target(group: NodeGroup) -> TargetReference | None:
    """Return what holds the size of a group: an object, or a provider; None if it can only be recommended."""
    if group.scalable is not None:
        return group.scalable
    provider = group.provider
    return None if provider is None else TargetReference(PROVIDER_API, "NodeGroup", provider.provider, group.name)


def group_writes(
    recommendation: str,
    groups: NodeGroups,
    sizes: Mapping[str, int],
    plans: Mapping[str, RemovalPlan],
    *,
    valid_until: float,
    reason: str = "",
    waits: Mapping[str, float] = MappingProxyType({}),
) -> GroupWrites:
    """Return the writes by which groups get their sizes.

    `sizes` are the target sizes without removals. A group that should not grow is lowered by one for each Machine, or
    each node, of its plan. A group that another autoscaler manages, that is paused, or whose size nothing holds is
    refused. `waits` has the groups to which nothing is sent before a given time. Marks of earlier removals are
    removed unless the same Machine is removed now, regardless of who may write the size.
    """
    writes: list[PendingWrite] = []
    refusals: dict[str, str] = {}
    for group in groups.groups:
        plan = plans.get(group.name, _NO_PLAN)
        change, target, refusal = _change_of(group, sizes, plan), group_target(group), _refusal(group)
        if change.size != group.target_size and (target is None or refusal):
            refusals[group.name] = refusal
            change = _GroupChange(group.target_size)
        going = {removal.name for removal in change.removals}
        unmarks = tuple(machine for machine in plan.stale if machine.name not in going)
        if target is not None and (change.size != group.target_size or unmarks):
            write = PendingWrite(
                recommendation,
                target,
                change.size,
                valid_until,
                reason,
                group.target_size,
                change.removals,
                change.nodes,
            )
            wait = waits.get(group.name, 0.0)
            writes.append(replace(write, waits_until=wait, unmarks=unmarks, machines=change.failed))
    return GroupWrites(tuple(writes), refusals)


def _change_of(group: NodeGroup, sizes: Mapping[str, int], plan: RemovalPlan) -> _GroupChange:
    """Return the size of a group after the nodes that are removed from it now."""
    size = sizes.get(group.name, group.target_size)
    if plan.failed and size <= group.target_size:
        # A smaller size would remove the failed machines; other removals wait for the next decision.
        return _GroupChange(group.target_size - len(plan.failed), failed=plan.failed)
    if size != group.target_size:
        return _GroupChange(size)
    return _GroupChange(size - len(plan.machines) - len(plan.nodes), plan.machines, plan.nodes)


def _refusal(group: NodeGroup) -> str:
    if group.autoscaler:
        return f"{group.autoscaler} manages it: use the outputs metric or capacityBuffer, or remove it there"
    if not group.is_writable:
        return (
            "its size can only be recommended: groups of static and byLabel are read-only, as are those of a plugin "
            "without `writes: true`"
        )
    return group.paused or group.problem


def plan_node_removals(group: NodeGroup, nodes: Iterable[str]) -> RemovalPlan:
    """Return which nodes of a provider's group are removed now, in the given order, and why the others are kept.

    No more nodes are removed than the minimum size of the group allows.
    """
    provider, wanted = group.provider, tuple(nodes)
    if provider is None or not provider.deletes_nodes:
        return RemovalPlan(kept=dict.fromkeys(wanted, "deleteNodes is off, so removals are only recommended"))
    if group.problem or group.paused or group.autoscaler:
        reason = group.problem or group.paused or f"{group.autoscaler} manages the group"
        return RemovalPlan(kept=dict.fromkeys(wanted, reason))
    most = max(0, group.sure_size - group.min_size)
    kept = dict.fromkeys(wanted[most:], f"the group has a minimum of {group.min_size}")
    whole = len(wanted) if group.options.zero_or_max else 0
    return RemovalPlan(kept=kept, nodes=tuple(NodeRemoval(each, whole) for each in wanted[:most]))


def plan_machine_deletions(machines: Iterable[FailedMachine]) -> dict[str, tuple[MachineToDelete, ...]]:
    """Return the failed machines that are deleted now, by group."""
    due: dict[str, tuple[MachineToDelete, ...]] = {}
    for one in machines:
        if one.is_due:
            due[one.group] = (*due.get(one.group, ()), MachineToDelete(one.provider_id, one.is_creation_error))
    return due


def buffer_target(stated: BufferSettings, resolve: ResolveResource) -> TargetReference:
    """Return the CapacityBuffer in the version that the cluster serves. Raises UnknownResourceError."""
    served = resolve("autoscaling.x-k8s.io", "CapacityBuffer")
    return TargetReference(served.api_version, served.kind, stated.namespace, stated.name)
