"""Node groups of Cluster API whose size somebody else keeps writing: theirs is left in place, as for targets. Pure.

Two recommenders write as the same field manager. So if that manager has written another size than the last one that
this recommender wrote, after that write, another recommender wrote it. This only holds while no other process of this
installation writes, and so only with a Lease.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.kubernetes.client import USER_AGENT
from recommender.decisions.inputs import HELD_SECONDS, ReplacedSize
from recommender.decisions.targets.owners import refusal_for_managers, refusal_for_replaced_size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recommender.decisions.policy_settings import Owners
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups, SizeManager
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory, WrittenSize

_HPA: Final = "kube-controller-manager"
"""The field manager as which the HPA controller writes sizes."""
_BY_HPA: Final = (
    "an HPA has changed its size in the last 15 minutes (field manager kube-controller-manager): remove the HPA, or "
    "leave the group to it"
)


def with_group_owners(groups: NodeGroups, owners: Owners, memory: ClusterSizeMemory | None, now: float) -> NodeGroups:
    """Return the groups, of which those with an owner are paused; `now` is in Unix seconds.

    `memory` has the sizes that this recommender wrote; None if another process of its installation may write, too.

    An HPA is such an owner, since it adds no nodes for pending pods, as Cluster Autoscaler and Karpenter do: these pods
    must not wait for its group while another one can hold them.
    """

    def with_owner(group: NodeGroup) -> NodeGroup:
        refusal = refusal_for_managers((each.manager for each in group.size_managers), owners)
        written = None if memory is None else memory.written.get(group.name)
        if refusal is None and written is not None and _is_replaced(group, written, now):
            refusal = refusal_for_replaced_size(ReplacedSize(written.size, written.since + HELD_SECONDS))
        message = refusal.message if refusal else _BY_HPA if _has_hpa(group.size_managers, now) else ""
        return replace(group, paused=group.paused or message) if message else group

    return replace(groups, groups=tuple(map(with_owner, groups.groups)))


def _has_hpa(managers: Iterable[SizeManager], now: float) -> bool:
    return any(each.manager == _HPA and each.time is not None and now - each.time <= HELD_SECONDS for each in managers)


def _is_replaced(group: NodeGroup, written: WrittenSize, now: float) -> bool:
    """Return whether another recommender wrote the size that is seen, which may be older than the last own write."""
    if group.target_size == written.size or now >= written.since + HELD_SECONDS:
        return False
    # Field managers have whole seconds.
    return any(
        each.manager == USER_AGENT and each.time is not None and each.time >= int(written.since)
        for each in group.size_managers
    )
