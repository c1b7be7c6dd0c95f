"""What a cluster size decision writes, and what is remembered of it. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from recommender.cluster_size.future.buffers import ChunkError, chunk_of, chunks_for
from recommender.cluster_size.model.memory import RequestedNodes
from recommender.cluster_size.node_groups.cluster_api.removals import plan_removals
from recommender.decisions.loop import Decision
from recommender.outputs.sizes.group_wishes import GroupWishes, group_wishes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.cluster.state import ClusterPod, ClusterState
    from recommender.cluster_size.model.answer import ClusterSizeAnswer
    from recommender.cluster_size.model.groups import NodeGroups
    from recommender.cluster_size.model.memory import ClusterSizeMemory
    from recommender.cluster_size.model.settings import BufferSettings, ClusterSizeSettings


@dataclass(frozen=True, slots=True)
class BufferSize:
    """The size that a CapacityBuffer should have."""

    buffer: BufferSettings
    replicas: int | None
    """None: it is not known, so nothing is written."""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SizeDecision(Decision):
    """A decision with what is to be written because of it."""

    groups: GroupWishes = field(default_factory=GroupWishes)
    buffer: BufferSize | None = None
    valid_until: float = 0.0
    """Nothing is written after this time, in seconds since the Unix epoch."""


def wished_sizes(
    name: str,
    answer: ClusterSizeAnswer,
    groups: NodeGroups,
    settings: ClusterSizeSettings,
    cluster: ClusterState,
    valid_until: float,
) -> GroupWishes:
    """Return the writes by which groups get the recommended sizes, and why others may not be written."""
    due: dict[str, list[str]] = defaultdict(list)
    for removal in answer.removals:
        if removal.is_due:
            due[removal.group].append(removal.node)
    stated = settings.node_groups.cluster_api
    plans = {
        group.name: plan_removals(group, due[group.name], stated, cluster)
        for group in groups.groups
        if group.name in due and stated is not None
    }
    sizes = {group.name: group.recommended for group in answer.groups if not group.is_left_out}
    return group_wishes(name, groups, sizes, plans, valid_until=valid_until, reason=answer.binding or "")


def remembered_writes(
    memory: ClusterSizeMemory, wishes: GroupWishes, groups: NodeGroups, now: float
) -> ClusterSizeMemory:
    """Return the memory with the nodes that are asked for now, those that go, and the cool-downs that begin."""
    by_target = {
        (group.scalable.kind, group.scalable.namespace, group.scalable.name): group
        for group in groups.groups
        if group.scalable is not None
    }
    requested, sizes = dict(memory.requested), dict(memory.sizes)
    grows, shrinks = False, False
    for wish in wishes.wishes:
        group = by_target[wish.target.kind, wish.target.namespace, wish.target.name]
        if wish.replicas > group.target_size:
            grows = True
            known = requested.get(group.name)
            if known is None or known.size != wish.replicas:
                requested[group.name] = RequestedNodes(wish.replicas, now)
        if wish.removals:
            shrinks = True
            sizes[group.name] = wish.replicas
    return replace(
        memory,
        requested=requested,
        sizes=sizes,
        changes=(*memory.changes, now) if shrinks and now not in memory.changes else memory.changes,
        last_scale_up=now if grows else memory.last_scale_up,
        last_delete=now if shrinks else memory.last_delete,
    )


def buffer_size(settings: ClusterSizeSettings, pods: Iterable[ClusterPod], cluster: ClusterState) -> BufferSize | None:
    """Return how many chunks hold the pods of the future; None without the output `capacityBuffer`."""
    if settings.buffer is None:
        return None
    try:
        return BufferSize(settings.buffer, chunks_for(pods, chunk_of(settings.buffer, cluster)))
    except ChunkError as error:
        return BufferSize(settings.buffer, None, str(error))
