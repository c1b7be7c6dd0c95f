"""The outcome of requested sizes, and how it is remembered.

The memory holds a size as requested before its write begins. It counts as written once its write has succeeded or the
group has that size: only then are nodes on their way, and the cool-downs begin. So a process that is killed at any
moment neither forgets nodes that it has requested nor waits for nodes that it has not.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from recommender.decisions.inputs import HELD_SECONDS
from recommender.kinds.cluster_size.group_writes import group_target
from recommender.kinds.cluster_size.health.requested_nodes import after_failure
from recommender.kinds.cluster_size.model.memory import AskedSize, RequestedNodes, WrittenSize, known_seconds
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import NOT_STORED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from recommender.decisions.record import TargetReference
    from recommender.kinds.cluster_size.group_writes import GroupWrites
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.outputs.write_attempt import ScaleOutcome

_WRITTEN: Final = frozenset({ScaleResult.OK, ScaleResult.UNCHANGED})


INHERITED_SECONDS: Final = 75.0
"""How long a process waits before it sends a provider a request that an earlier process may have sent: a change of a
provider's size is relative, a call outlives its process by up to 15 s, and clouds show a new size up to a minute late.
"""
_PROVIDER_SECONDS: Final = 2 * INHERITED_SECONDS
"""The least time for which a size requested from a provider is remembered: long enough that the successor of a killed
process knows of it while it waits."""


def inherited_waits(situation: ClusterSituation) -> dict[str, float]:
    """Return the time before which no request is sent, in Unix seconds, by group of a provider.

    A size that was requested before this process began to decide may still take effect.
    """
    began = situation.began
    if began is None:
        return {}
    asked = situation.memory.asked
    return {
        group.name: began + INHERITED_SECONDS
        for group in situation.groups.groups
        if group.provider is not None and group.name in asked and asked[group.name].since < began
    }


def believed_sizes(groups: NodeGroups, memory: ClusterSizeMemory, now: float) -> NodeGroups:
    """Return the groups; those of a provider have at least the size that the provider has accepted.

    A provider may show a new size late, or never. Its nodes are on their way all the same, and a second request would
    add the same number again. The size that the provider shows is believed once the nodes are late, or once nodes were
    removed since. A group whose size is not shown for longer than providers may take cannot grow, since a change of a
    size that is not known would be refused; other groups can.
    """
    return dataclasses.replace(
        groups, groups=tuple(_group_at_requested_size(group, memory, now) for group in groups.groups)
    )


def _group_at_requested_size(group: NodeGroup, memory: ClusterSizeMemory, now: float) -> NodeGroup:
    requested = memory.requested.get(group.name)
    if group.provider is None or requested is None or requested.are_late:
        return group
    size = requested.size - group.surplus
    if size <= group.target_size:
        return group
    if memory.last_delete is not None and memory.last_delete >= requested.since:
        return group
    held = f"its provider has accepted a size of {size} and still shows {group.target_size}: check the provider"
    is_overdue = now - requested.since > INHERITED_SECONDS
    return dataclasses.replace(group, target_size=size, held=held if is_overdue else "")


def settled_writes(
    memory: ClusterSizeMemory,
    groups: NodeGroups,
    outcomes: Mapping[TargetReference, ScaleOutcome],
    now: float,
    valid_seconds: float,
    confirmed: float | None = None,
    began: float | None = None,
) -> ClusterSizeMemory:
    """Return the memory with the outcome of the sizes that were requested; pure.

    After a failed write, its group backs off; after a failed removal, the cool-down for failed removals begins. An API
    server that cannot be reached is not the failure of a group: the same size is requested again, unless this write
    alone has failed for as long as a decision is valid, while the server answered other requests. A failed write may
    have had an effect all the same, so the group's size is checked for that effect as long as a decision can be carried
    out (`valid_seconds`), and longer for a provider's group, whose size may be shown late. `confirmed` is the time of
    the facts; None for now. `began` is the time since which this process decides; None if it is not known.
    """
    by_name = {group.name: group for group in groups.groups}
    asked, written = dict(memory.asked), dict(memory.written)
    for name, one in memory.asked.items():
        group = by_name.get(name)
        outcome = _outcome_of(one, group, outcomes)
        result = None if outcome is None else outcome.result
        if result in _WRITTEN or (group is not None and group.target_size == one.size):
            memory = _with_written_size(memory, name, one, group, groups.created)
            # An admission webhook may have changed it.
            size = one.size if outcome is None or outcome.stored is None else outcome.stored
            written[name] = WrittenSize(size, one.since, one.before if _is_drain(one, group) else None)
            del asked[name]
            continue
        if group is not None and one.removes and not one.machines and group.target_size < one.before:
            # Nodes are removed one after the other; some are removed already.
            memory = _with_written_size(memory, name, one, group, groups.created)
        known = known_seconds(memory.absences, one.since, now if confirmed is None else min(confirmed, now))
        if (earlier := _accepted_before(one, group, outcomes)) is not None:
            memory = _with_written_size(memory, name, earlier, group, groups.created)
        if outcome is not None and _is_failure_of_the_group(outcome, known, valid_seconds):
            memory = _with_failure(memory, name, one, outcome.message, now)
        if result is ScaleResult.REFUSED or now > _kept_until(one, group, valid_seconds, began):
            del asked[name]
    written = {name: one for name, one in written.items() if now < one.since + HELD_SECONDS}
    return replace(memory, asked=asked, written=written)


def _kept_until(asked: AskedSize, group: NodeGroup | None, valid_seconds: float, began: float | None) -> float:
    """Return until when a requested size is remembered if it is not shown, in Unix seconds.

    An earlier process may have repeated its request until it ended, so the size is remembered as long as this process
    waits because of it.
    """
    if not _has_provider(group):
        return asked.since + valid_seconds
    until = asked.since + max(valid_seconds, _PROVIDER_SECONDS)
    return until if began is None or asked.since >= began else max(until, began + INHERITED_SECONDS)


def _is_failure_of_the_group(outcome: ScaleOutcome, known: float, valid_seconds: float) -> bool:
    """Return whether a write failed because of the group, or keeps failing although the server can be reached."""
    if outcome.result is not ScaleResult.ERROR or outcome.message == NOT_STORED:
        return False
    return known > valid_seconds or not outcome.is_of_the_server


def _outcome_of(
    asked: AskedSize, group: NodeGroup | None, outcomes: Mapping[TargetReference, ScaleOutcome]
) -> ScaleOutcome | None:
    target = None if group is None else group_target(group)
    outcome = None if target is None else outcomes.get(target)
    if outcome is None or outcome.write.replicas != asked.size:
        return None
    return outcome if tuple(one.provider_id for one in outcome.write.machines) == asked.machines else None


def _accepted_before(
    asked: AskedSize, group: NodeGroup | None, outcomes: Mapping[TargetReference, ScaleOutcome]
) -> AskedSize | None:
    """Return the growth that a provider accepted while a decision replaced it by another size; None if there is none.

    Its nodes are on their way, although the size may be shown late.
    """
    target = None if group is None or not _has_provider(group) else group_target(group)
    outcome = None if target is None else outcomes.get(target)
    if outcome is None or outcome.result is not ScaleResult.OK or outcome.write.known_size != asked.before:
        return None
    size = outcome.write.replicas
    return AskedSize(size, asked.before, asked.since) if asked.before < size != asked.size else None


def _expected_nodes(
    asked: AskedSize, group: NodeGroup | None, known: RequestedNodes | None, created: Mapping[str, float]
) -> int:
    """Return how many nodes a group has once those that were requested have come; `created` is when each node did.

    The size that a provider shows may be too large, since it counts a node until it is asked to delete the node's
    machine. It may be too small, since it no longer counts the node after that, although the node may stay for minutes.
    Or it may not be shown at all.
    """
    if group is None or group.provider is None:
        return asked.size
    # An outcome that is seen late, as after an outage, is seen when what was requested has come.
    older = sum(created.get(name, 0.0) <= asked.since for name in group.nodes)
    more, stay = asked.size - asked.before, older - len(group.deleting)
    before = max(stay, asked.before - len(group.deleting), 0 if known is None else known.size)
    return min(before + more, max(asked.size, stay + more))


def _is_drain(asked: AskedSize, group: NodeGroup | None) -> bool:
    """Return whether nodes are drained before the size falls."""
    return _has_provider(group) and asked.removes and not asked.machines


def _has_provider(group: NodeGroup | None) -> bool:
    return group is not None and group.provider is not None


def _with_written_size(
    memory: ClusterSizeMemory, name: str, asked: AskedSize, group: NodeGroup | None, created: Mapping[str, float]
) -> ClusterSizeMemory:
    if asked.size > asked.before:
        known = memory.requested.get(name)
        size = _expected_nodes(asked, group, known, created)
        is_known = known is not None and known.size == size and not known.are_late
        request = known if known is not None and is_known else RequestedNodes(size, asked.since)
        last = max(asked.since, memory.last_scale_up or 0.0)
        return replace(memory, requested={**memory.requested, name: request}, last_scale_up=last)
    if asked.machines:
        return _without_machines(memory, name, asked)
    if asked.removes:
        return replace(memory, last_delete=max(asked.since, memory.last_delete or 0.0))
    return memory


def _without_machines(memory: ClusterSizeMemory, name: str, asked: AskedSize) -> ClusterSizeMemory:
    """Return the memory after failed machines of a group were deleted: they are not waited for any more."""
    requested, known = dict(memory.requested), memory.requested.get(name)
    if known is not None:
        requested[name] = replace(known, size=max(0, known.size - len(asked.machines)))
    return replace(_with_request_for(memory, asked, asked.since), requested=requested)


def _with_request_for(memory: ClusterSizeMemory, asked: AskedSize, time: float) -> ClusterSizeMemory:
    times = {**memory.deleted_machines, **dict.fromkeys(asked.machines, time)}
    return replace(memory, deleted_machines=times)


def _with_failure(
    memory: ClusterSizeMemory, name: str, asked: AskedSize, message: str, now: float
) -> ClusterSizeMemory:
    if asked.size > asked.before:
        back_off = after_failure(memory.back_offs.get(name), now, f"its size could not be written: {message}")
        return replace(memory, back_offs={**memory.back_offs, name: back_off})
    if asked.machines:
        # Nodes can be removed although a machine cannot be deleted.
        return _with_request_for(memory, asked, now)
    return replace(memory, last_failure=now) if asked.removes else memory


def with_asked_sizes(
    memory: ClusterSizeMemory, writes: GroupWrites, groups: NodeGroups, now: float, counted: Collection[float] = ()
) -> tuple[ClusterSizeMemory, tuple[float, ...]]:
    """Return the memory with the sizes that are requested now, and the times of changes that these replace; pure.

    A request to grow may have been written, although another one replaces it before its outcome is known. If nothing of
    it was sent so far, it may still be sent until this decision takes effect, so the next one settles whether it
    counts, unless its time is that of a change that counts anyway, such as one of those `counted`.
    """
    by_target = {group_target(group): group for group in groups.groups}
    asked, sizes, written, unsent = dict(memory.asked), dict(memory.sizes), dict(memory.written), dict(memory.unsent)
    sure: list[float] = []
    replaced: dict[str, AskedSize] = {}
    for write in writes.writes:
        group, target = by_target[write.target], str(write.target)
        if write.replicas == group.target_size:
            continue
        known = asked.get(group.name)
        machines = tuple(one.provider_id for one in write.machines)
        is_same = known is not None and (known.size, known.before) == (write.replicas, group.target_size)
        if known is not None and is_same and known.machines == machines:
            continue
        removes = bool(write.removals or write.node_removals or machines)
        is_unsent = known is not None and unsent.get(target) == known.size
        # What may be on its way to a provider began with the first request at this size.
        is_on_its_way = group.provider is not None and not is_unsent
        is_same_start = known is not None and is_on_its_way and known.before == group.target_size
        # Some of its nodes are removed already.
        is_rest = known is not None and known.removes and removes and known.size == write.replicas
        since = known.since if known is not None and (is_same_start or is_rest) else now
        if known is not None and known.size > known.before:
            if is_unsent:
                replaced[target] = known
            else:
                sure.append(now if since == known.since else known.since)
        unsent[target] = write.replicas
        written.pop(group.name, None)
        asked[group.name] = AskedSize(write.replicas, group.target_size, since, removes, machines)
        if removes:
            sizes[group.name] = write.replicas
    times = (*sure, *(one.since for one in replaced.values()))
    open_ones = {target: one for target, one in replaced.items() if one.since not in {*counted, *sure}}
    after = replace(memory, asked=asked, sizes=sizes, written=written, unsent=unsent, replaced=open_ones)
    return after, times
