"""Turns recommended sizes into wishes: what may be written, and why the rest may not. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recommender.decisions.record import TargetReference
from recommender.outputs.wishes import Wish

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.objects.resources import ResolveResource
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups
    from recommender.kinds.cluster_size.model.size_settings import BufferSettings
    from recommender.kinds.cluster_size.node_groups.cluster_api.removals import RemovalPlan


@dataclass(frozen=True, slots=True)
class GroupWishes:
    """The sizes to write for node groups."""

    wishes: tuple[Wish, ...] = ()
    refusals: Mapping[str, str] = field(default_factory=dict)
    """By group whose size should change, why it is not written."""


def group_target(group: NodeGroup) -> TargetReference | None:
    """Return the object that holds the size of a group; None if it can only be recommended."""
    of = group.scalable
    return None if of is None else TargetReference(of.api_version, of.kind, of.namespace, of.name)


def group_wishes(
    recommendation: str,
    groups: NodeGroups,
    sizes: Mapping[str, int],
    plans: Mapping[str, RemovalPlan],
    *,
    valid_until: float,
    reason: str = "",
) -> GroupWishes:
    """Return the writes by which groups get their sizes.

    `sizes` are the target sizes without removals. A group that should not grow is lowered by the Machines of its plan,
    one each. A group that another autoscaler manages, that is paused, or whose size nothing holds is refused.
    """
    wishes: list[Wish] = []
    refusals: dict[str, str] = {}
    for group in groups.groups:
        size = sizes.get(group.name, group.target_size)
        plan = plans.get(group.name)
        removals = plan.machines if plan is not None and size == group.target_size else ()
        size -= len(removals)
        if size == group.target_size:
            continue
        target, refusal = group_target(group), _refusal(group)
        if target is None or refusal:
            refusals[group.name] = refusal
        else:
            wishes.append(Wish(recommendation, target, size, valid_until, reason, group.target_size, removals))
    return GroupWishes(tuple(wishes), refusals)


def _refusal(group: NodeGroup) -> str:
    if group.autoscaler:
        return f"{group.autoscaler} manages it: use the outputs metric or capacityBuffer, or remove it there"
    if group.scalable is None:
        return "no object holds its size: only groups of clusterAPI can be scaled"
    return group.paused or group.problem


def buffer_target(stated: BufferSettings, resolve: ResolveResource) -> TargetReference:
    """Return the CapacityBuffer in the version that the cluster serves. Raises UnknownResourceError."""
    served = resolve("autoscaling.x-k8s.io", "CapacityBuffer")
    return TargetReference(served.api_version, served.kind, stated.namespace, stated.name)
