"""The writes that a cluster size decision asks for (pure)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.future.buffers import ChunkError, buffer_chunks
from recommender.kinds.cluster_size.group_wishes import GroupWishes, group_wishes
from recommender.kinds.cluster_size.node_groups.cluster_api.removals import plan_removals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.cluster.values.state import ClusterPod, ClusterState
    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer
    from recommender.kinds.cluster_size.model.groups import NodeGroups
    from recommender.kinds.cluster_size.model.size_settings import BufferSettings, ClusterSizeSettings


@dataclass(frozen=True, slots=True)
class BufferSize:
    """The size that a CapacityBuffer should have."""

    buffer: BufferSettings
    replicas: int | None
    """None: it is not known, so nothing is written."""
    problem: str = ""
    detail: str = ""
    """The calculation, in one sentence."""


@dataclass(frozen=True, slots=True)
class SizeWrites:
    """What is to be written because of a decision."""

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


def buffer_size(settings: ClusterSizeSettings, pods: Sequence[ClusterPod], cluster: ClusterState) -> BufferSize | None:
    """Return how many chunks hold the pods of the future; None without the output `capacityBuffer`."""
    if settings.buffer is None:
        return None
    try:
        chunks = buffer_chunks(settings.buffer, cluster, pods)
        return BufferSize(settings.buffer, chunks.replicas, detail=chunks.detail)
    except ChunkError as error:
        return BufferSize(settings.buffer, None, str(error))
