"""The writes that a cluster size decision requests (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from adapter.foundation.objects.grouping import group_values
from recommender.kinds.cluster_size.future.capacity_buffers import BufferSize, ChunkError, buffer_chunks
from recommender.kinds.cluster_size.group_writes import (
    GroupWrites,
    group_writes,
    plan_machine_deletions,
    plan_node_removals,
)
from recommender.kinds.cluster_size.node_groups.cluster_api.removals import (
    DELETE_MARK,
    RemovalPlan,
    plan_removals,
    stale_marks,
    unmarking_command,
)
from recommender.kinds.cluster_size.requested_sizes import inherited_waits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.cluster.values.state import ClusterPod, ClusterState
    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer
    from recommender.kinds.cluster_size.model.groups import NodeGroups
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation


@dataclass(frozen=True, slots=True)
class SizeWrites:
    """The writes that a decision requests."""

    groups: GroupWrites = field(default_factory=GroupWrites)
    buffer: BufferSize | None = None
    valid_until: float = 0.0
    """Nothing is written after this time, in Unix seconds."""


def recommended_writes(
    recommendation: str,
    situation: ClusterSituation,
    settings: ClusterSizeSettings,
    answer: ClusterSizeAnswer,
    cluster: ClusterState,
    valid_until: float,
) -> GroupWrites:
    """Return the writes that give groups the recommended sizes, and why others may not be written."""
    groups = situation.groups
    due = group_values((removal.group, removal.node) for removal in answer.removals if removal.is_due)
    stated = settings.node_groups.cluster_api
    plans: dict[str, RemovalPlan] = {}
    for group in groups.groups:
        if group.name in due and group.provider is not None:
            plans[group.name] = plan_node_removals(group, due[group.name])
        elif group.name in due and stated is not None:
            plans[group.name] = plan_removals(group, due[group.name], stated, cluster)
    for name, stale in ({} if stated is None else stale_marks(groups.groups, stated, cluster)).items():
        plans[name] = replace(plans.get(name, RemovalPlan()), stale=stale)
    for name, failed in plan_machine_deletions(answer.failed_machines).items():
        plans[name] = replace(plans.get(name, RemovalPlan()), failed=failed)
    sizes = {group.name: group.recommended for group in answer.groups if not group.is_left_out}
    return group_writes(
        recommendation,
        groups,
        sizes,
        plans,
        valid_until=valid_until,
        reason=answer.binding or "",
        waits=inherited_waits(situation),
    )


def marks_left(groups: NodeGroups, settings: ClusterSizeSettings, cluster: ClusterState) -> tuple[str, ...]:
    """Return a note for the marks of earlier removals that remain because this program does not write sizes.

    It is for recommendations without the output `scale`.
    """
    stated = settings.node_groups.cluster_api
    marks = {} if stated is None else stale_marks(groups.groups, stated, cluster)
    return tuple(
        f"an earlier removal has left {DELETE_MARK} on Machines of {name}, so any smaller size deletes these first: "
        f"{', '.join(machine.name for machine in machines)}; run {unmarking_command(machines)}"
        for name, machines in sorted(marks.items())
    )


def buffer_size(settings: ClusterSizeSettings, pods: Sequence[ClusterPod], cluster: ClusterState) -> BufferSize | None:
    """Return how many chunks hold the future pods; None if there is no output `capacityBuffer`."""
    if settings.buffer is None:
        return None
    try:
        return buffer_chunks(settings.buffer, cluster, pods)
    except ChunkError as error:
        return BufferSize(settings.buffer, None, str(error))
