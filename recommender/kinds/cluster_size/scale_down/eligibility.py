"""Determines which nodes are eligible for removal: the rules that need neither other nodes nor a simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.model.taints import is_leaving
from recommender.kinds.cluster_size.scale_down.annotations import SCALE_DOWN_DISABLED
from recommender.kinds.cluster_size.scale_down.reasons import KeepReason, percent_of
from recommender.kinds.cluster_size.scale_down.utilization import (
    Utilization,
    UtilizationError,
    UtilizationOptions,
    node_utilization,
)

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Whether a node may be considered for removal."""

    utilization: Utilization | None
    """The utilisation; None if it does not matter or cannot be calculated."""
    reason: KeepReason | None = None
    """Why the node may not be considered; None if it may."""
    detail: str = ""


def is_being_deleted(node: ClusterNode, group: NodeGroup | None) -> bool:
    """Return whether the node is being deleted already."""
    return is_leaving(node) or (group is not None and node.name in group.deleting)


def eligibility(
    node: ClusterNode,
    info: NodeInfo,
    group: NodeGroup | None,
    settings: ScaleDownSettings,
    options: UtilizationOptions | None,
) -> Eligibility:
    """Return whether a node may be considered, by Cluster Autoscaler's rules in order; `info` has its pods.

    `options` are those of the group; None without a group.
    """
    outright = _outright(node, group)
    if outright:
        return outright
    if group is None or options is None:
        return Eligibility(None, KeepReason.NOT_AUTOSCALED, "the node does not belong to a node group")
    try:
        utilization = node_utilization(info, options)
    except UtilizationError as error:
        return Eligibility(None, KeepReason.UNEXPECTED_ERROR, f"its utilisation is not known: {error}")
    if not settings.unready_enabled and not node.ready:
        detail = "the node is not ready, and removing such nodes is disabled"
        return Eligibility(utilization, KeepReason.SCALE_DOWN_UNREADY_DISABLED, detail)
    threshold = _threshold(group, settings, utilization)
    if utilization.ratio <= threshold:
        return Eligibility(utilization)
    detail = (
        f"{percent_of(utilization.ratio)} of {utilization.resource} is requested, "
        f"more than the threshold of {percent_of(threshold)}"
    )
    return Eligibility(utilization, KeepReason.NOT_UNDERUTILIZED, detail)


def share_of(node: ClusterNode, info: NodeInfo, group: NodeGroup | None, options: UtilizationOptions | None) -> float:
    """Return the utilisation that `eligibility` would state, without its verdict; 0 where it states none."""
    if group is None or options is None or _outright(node, group):
        return 0.0
    try:
        return node_utilization(info, options).ratio
    except UtilizationError:
        return 0.0


def _outright(node: ClusterNode, group: NodeGroup | None) -> Eligibility | None:
    """Return why a node may not be considered; None if that depends on its utilisation."""
    if is_being_deleted(node, group):
        return Eligibility(None, KeepReason.CURRENTLY_BEING_DELETED, "the node is being deleted already")
    if node.annotations.get(SCALE_DOWN_DISABLED) == "true":
        detail = f"the node has the annotation {SCALE_DOWN_DISABLED}: true"
        return Eligibility(None, KeepReason.SCALE_DOWN_DISABLED_ANNOTATION, detail)
    if group is not None and group.problem:
        detail = f"the node group {group.name} is left out: {group.problem}"
        return Eligibility(None, KeepReason.NOT_AUTOSCALED, detail)
    return None


def utilization_options(group: NodeGroup, settings: ScaleDownSettings, now: float) -> UtilizationOptions:
    """Return which pods count towards the utilisation of a group's nodes."""
    ignored = group.options.ignore_daemon_sets_utilization
    return UtilizationOptions(
        now=now,
        ignore_daemon_sets=settings.ignore_daemon_sets_utilization if ignored is None else ignored,
        ignore_mirror_pods=settings.ignore_mirror_pods_utilization,
        gpu_label=group.gpu_label,
    )


def _threshold(group: NodeGroup, settings: ScaleDownSettings, utilization: Utilization) -> float:
    options = group.options
    own, common = (
        (options.gpu_utilization_threshold_ratio, settings.gpu_utilization_threshold_ratio)
        if utilization.is_of_gpu
        else (options.utilization_threshold_ratio, settings.utilization_threshold_ratio)
    )
    return common if own is None else own
