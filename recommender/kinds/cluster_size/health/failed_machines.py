"""Machines that cannot be created, or that have not become nodes in time: which are deleted, and when.

These are `deleteCreatedNodesWithErrors` and `removeOldUnregisteredNodes` of Cluster Autoscaler. How long a machine has
been without a node counts from the first decision of this process that has seen it, so a restart begins anew, and a
machine whose id changes with each call is never old enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from adapter.foundation.objects.grouping import group_values
from adapter.foundation.reports.counts import agreeing, count_of
from recommender.kinds.cluster_size.health.cluster_health import health_problem
from recommender.kinds.cluster_size.model.answer import FailedMachine
from recommender.kinds.cluster_size.requested_sizes import INHERITED_SECONDS
from recommender.kinds.cluster_size.scale_down.removal_candidates import nodes_being_deleted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from recommender.kinds.cluster_size.model.answer import Removal, ScaleUp
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation

_MOST_NOTES: Final = 20
ASKED_SECONDS: Final = 900.0
"""How long a machine whose deletion was requested may stay before it is requested again."""


def failed_machines(
    situation: ClusterSituation, settings: ClusterSizeSettings, scaled: ScaleUp, removals: Iterable[Removal]
) -> tuple[FailedMachine, ...]:
    """Return the machines that have failed, each with what its deletion waits for.

    No group becomes smaller than its minimum, or than the number of its nodes.
    """
    asked = situation.memory.deleted_machines
    going = len(nodes_being_deleted(situation)) + sum(removal.is_due for removal in removals)
    listed = {one.provider_id for group in situation.groups.groups for one in group.unregistered}
    left = settings.scale_down.max_parallelism - going - len(listed & asked.keys())
    failed = {group.name: tuple(_failed_machines_of(group, situation, settings)) for group in situation.groups.groups}
    lost = sum(not one.is_creation_error for its in failed.values() for one in its)
    doubt = _too_many(lost, len(situation.nodes), settings)
    found: list[FailedMachine] = []
    for group in situation.groups.groups:
        its = sorted(failed[group.name], key=_turn)
        hold = _hold_of_group(group, situation, settings, scaled) if its else ""
        room = group.target_size - max(group.min_size, _nodes(group))
        for one in its:
            own = _hold_of_machine(one, group, situation) or ("" if one.is_creation_error else doubt)
            waits = hold or own or _limit(group, room, left, settings)
            if not waits:
                room, left = room - 1, left - 1
            found.append(one if not waits else one.as_waiting(waits))
    return tuple(found)


def with_machines_seen(memory: ClusterSizeMemory, situation: ClusterSituation) -> ClusterSizeMemory:
    """Return the memory with the time at which each machine without a node was first seen, without interruption."""
    now, before = situation.now, memory.unregistered_since
    since = {
        group.name: {
            one.provider_id: before.get(group.name, {}).get(one.provider_id, now) for one in group.unregistered
        }
        for group in situation.groups.groups
        if group.unregistered
    }
    asked = {one: time for one, time in memory.deleted_machines.items() if now - time < ASKED_SECONDS}
    return replace(memory, unregistered_since=since if situation.waits else {}, deleted_machines=asked)


def failed_machine_notes(machines: Iterable[FailedMachine]) -> Iterator[str]:
    """Yield a sentence for each way in which machines of a group have failed."""
    alike = group_values(((one.group, one.failure, one.waits), one.provider_id) for one in machines)
    for (group, failure, waits), names in sorted(alike.items())[:_MOST_NOTES]:
        what = names[0] if len(names) == 1 else f"{names[0]} and {count_of(len(names) - 1, 'more machine')}"
        then = f"not deleted: {waits}" if waits else "deleted through the provider"
        yield f"node group {group}: {what}: {failure}; {then}"
    if len(alike) > _MOST_NOTES:
        yield f"machines have failed in {count_of(len(alike) - _MOST_NOTES, 'more way')}: -o json has all of them"


def _failed_machines_of(
    group: NodeGroup, situation: ClusterSituation, settings: ClusterSizeSettings
) -> Iterator[FailedMachine]:
    since: Mapping[str, float] = situation.memory.unregistered_since.get(group.name, {})
    longest = settings.provision_seconds_of(group) or settings.max_node_provision_seconds
    for one in group.unregistered:
        if one.error:
            failure = f"it cannot be created: {one.error}"
            yield FailedMachine(one.provider_id, group.name, failure, is_creation_error=True)
        elif one.provider_id in since and situation.known_seconds_since(since[one.provider_id]) > longest:
            yield FailedMachine(one.provider_id, group.name, f"it has not become a node within {longest:.0f} s")


def _nodes(group: NodeGroup) -> int:
    """Return how many nodes a group has, whether the provider assigns them to it or lists their machines there."""
    return max(len(group.nodes), group.joined)


def _turn(machine: FailedMachine) -> tuple[bool, str]:
    return not machine.is_creation_error, machine.provider_id


def _hold_of_group(
    group: NodeGroup, situation: ClusterSituation, settings: ClusterSizeSettings, scaled: ScaleUp
) -> str:
    """Return why no machine of a group is deleted now; empty if some may be."""
    if group.provider is None or not group.provider.deletes_nodes:
        needed = "deleteNodes: true" if group.provider is not None else "writes: true and deleteNodes: true"
        return f"write `{needed}`, or delete it at the provider"
    if not situation.writes_sizes:
        return "this process writes no sizes: let `run` delete it, with the output scale"
    if not settings.scale_down.enabled:
        return "scaleDown.enabled is false"
    if group.options.zero_or_max:
        return "its group has either no node or all of them, and is not split"
    waits = (
        group.problem,
        group.paused,
        f"{group.autoscaler} manages its group" if group.autoscaler else "",
        group.unregistered_doubt,
        scaled.hold,
        group.held,
        "a change of the size of its group is under way" if _changes(group, situation) else "",
        f"node {group.deleting[0]} of its group is being deleted" if group.deleting else "",
    )
    return next(filter(None, waits), "")


def _too_many(lost: int, nodes: int, settings: ClusterSizeSettings) -> str:
    """Return why none of the machines that have not become nodes is deleted: the fault may be that of the cluster."""
    total = lost + nodes
    if not health_problem(lost, total, settings.unready):
        return ""
    return f"machines that are not nodes: {lost} of {total}, which is more than maxUnready allows: find out why"


def _changes(group: NodeGroup, situation: ClusterSituation) -> bool:
    """Return whether the outcome of another requested size is unknown: that request must not be forgotten."""
    asked = situation.memory.asked.get(group.name)
    return asked is not None and not asked.machines


def _hold_of_machine(machine: FailedMachine, group: NodeGroup, situation: ClusterSituation) -> str:
    if machine.provider_id in situation.memory.deleted_machines:
        return f"its deletion was requested, and is requested again after {ASKED_SECONDS:.0f} s"
    if situation.began is None or situation.now - situation.began < INHERITED_SECONDS:
        return f"this process has not decided for {INHERITED_SECONDS:.0f} s yet"
    if not machine.is_creation_error and not group.nodes:
        return "no machine of its group is a node, so ids cannot be compared: delete it at the provider"
    return ""


def _limit(group: NodeGroup, room: int, left: int, settings: ClusterSizeSettings) -> str:
    if room <= 0:
        if group.min_size >= _nodes(group):
            return f"its group has a minimum of {group.min_size}"
        return f"its group has {count_of(_nodes(group), 'node')}, and a size of {group.target_size}"
    most = settings.scale_down.max_parallelism
    return "" if left > 0 else f"at most {count_of(most, 'node')} {agreeing(most, 'is', 'are')} removed at a time"
