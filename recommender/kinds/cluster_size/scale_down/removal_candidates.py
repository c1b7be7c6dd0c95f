"""Selects the nodes to simulate, and their order; the others stay, each with its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.objects.grouping import group_values
from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.health.starting_nodes import starting_nodes
from recommender.kinds.cluster_size.model.answer import KeptNode
from recommender.kinds.cluster_size.model.pod_places import pod_name
from recommender.kinds.cluster_size.scale_down.eligibility import (
    Eligibility,
    eligibility,
    is_being_deleted,
    share_of,
    utilization_options,
)
from recommender.kinds.cluster_size.scale_down.reasons import KeepReason
from recommender.kinds.cluster_size.scale_down.simulated_removal import DrainPlan, Unremovable, drain_plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot
    from recommender.kinds.cluster_size.scale_down.drainability import DrainRules
    from recommender.kinds.cluster_size.scale_down.minimum_sizes import Minimums
    from recommender.kinds.cluster_size.scale_down.utilization import Utilization


@dataclass(frozen=True, slots=True)
class RemovalCandidate:
    """A node that can be removed if its pods fit elsewhere."""

    node: ClusterNode
    group: NodeGroup
    utilization: Utilization
    plan: DrainPlan
    since: float | None
    """Since when the node has been unneeded, if that is remembered."""


_OUTRIGHT: Final = frozenset(
    {KeepReason.NOT_AUTOSCALED, KeepReason.CURRENTLY_BEING_DELETED, KeepReason.SCALE_DOWN_DISABLED_ANNOTATION}
)
"""The reasons for which a node stays regardless of its pods and of its readiness."""

RemovalUnit: TypeAlias = tuple[RemovalCandidate, ...]
"""Nodes that are removed together: one, or all of a group that has either no node or all of them."""


@dataclass(frozen=True, slots=True)
class NodeSurvey:
    """All nodes of the cluster at one moment."""

    units: tuple[RemovalUnit, ...]
    """The units in the order in which they are simulated: empty nodes first, then those that have been unneeded for
    longest, then by utilisation."""
    kept: tuple[KeptNode, ...]
    destinations: tuple[str, ...]
    """Nodes that may take pods: those that stay in any case first, the fullest first, and then candidates, the last
    first. So pods seldom move twice."""


def survey(
    situation: ClusterSituation,
    settings: ClusterSizeSettings,
    snapshot: Snapshot,
    rules: DrainRules,
    minimums: Minimums,
) -> NodeSurvey:
    """Judge every node by the rules that need no simulation. A node that is starting stays, and takes no pods yet."""
    starting = starting_nodes(situation, settings)
    groups = {group.name: group for group in situation.groups.groups}
    options = {name: utilization_options(group, settings.scale_down, situation.now) for name, group in groups.items()}
    candidates: list[RemovalCandidate] = []
    kept: list[KeptNode] = []
    shares: dict[str, float] = {}
    for node, info in _real_nodes(situation, snapshot):
        name = node.name
        group_name = situation.groups.group_of.get(name, "")
        group = groups.get(group_name)
        if situation.candidates is not None and name not in situation.candidates:
            if node.ready and name not in starting and not is_being_deleted(node, group):
                shares[name] = share_of(node, info, group, options.get(group_name))
            continue
        judged = eligibility(node, info, group, settings.scale_down, options.get(group_name))
        if name in starting and judged.reason not in _OUTRIGHT:
            judged = Eligibility(None, KeepReason.NODE_STARTING, starting[name])
        # Scale-up counts nodes that are starting; pods that run elsewhere are not moved there yet.
        may_take = node.ready and name not in starting
        if may_take and judged.reason is not KeepReason.CURRENTLY_BEING_DELETED:
            shares[name] = judged.utilization.ratio if judged.utilization else 0.0
        if judged.reason or judged.utilization is None or group is None:
            kept.append(kept_node(node, group, f"{judged.reason}: {judged.detail}"))
            continue
        if minimums.is_smallest(group.name):
            kept.append(kept_node(node, group, _smallest(group)))
            continue
        plan = drain_plan(info, rules)
        if isinstance(plan, Unremovable):
            kept.append(kept_for(node, group, plan))
        else:
            since = situation.memory.unneeded_since.get(name) if situation.waits else None
            candidates.append(RemovalCandidate(node, group, judged.utilization, plan, since))
    units, incomplete = _units(candidates)
    kept += incomplete
    return NodeSurvey(units, tuple(kept), _destinations(shares, units))


def kept_node(node: ClusterNode, group: NodeGroup | None, reason: str) -> KeptNode:
    """Return a node that stays for a reason other than a pod."""
    return KeptNode(node.name, group.name if group else "", reason)


def kept_for(node: ClusterNode, group: NodeGroup, why: Unremovable) -> KeptNode:
    """Return a node that stays, with the pod that keeps it."""
    pod = pod_name(why.pod) if why.pod else None
    return KeptNode(node.name, group.name, str(why), pod)


def nodes_being_deleted(situation: ClusterSituation) -> frozenset[str]:
    """Return the names of the nodes that are being deleted."""
    groups = {group.name: group for group in situation.groups.groups}
    group_of = situation.groups.group_of
    return frozenset(
        node.name for node in situation.nodes if is_being_deleted(node, groups.get(group_of.get(node.name, "")))
    )


def _real_nodes(situation: ClusterSituation, snapshot: Snapshot) -> Iterator[tuple[ClusterNode, NodeInfo]]:
    """Yield the existing nodes, each once, without those that scale-up has added to the snapshot.

    Their state is taken from the cluster, since starting nodes already count as ready in the snapshot.
    """
    first: dict[str, ClusterNode] = {}
    for node in situation.nodes:
        first.setdefault(node.name, node)
    for name, node in first.items():
        if name in snapshot.nodes:
            yield node, snapshot.nodes[name]


def _smallest(group: NodeGroup) -> str:
    going = len(group.deleting)
    deleting = f", of which {going} {'is' if going == 1 else 'are'} being deleted" if going else ""
    size = count_of(group.sure_size + going, "node")
    sizes = f"the node group {group.name} has {size}{deleting}, and its minimum is {group.min_size}"
    return f"{KeepReason.NODE_GROUP_MIN_SIZE_REACHED}: {sizes}"


def _units(candidates: Iterable[RemovalCandidate]) -> tuple[tuple[RemovalUnit, ...], list[KeptNode]]:
    """Group the nodes that are removed together; candidates of groups that cannot be removed as a whole stay."""
    candidates = tuple(candidates)
    units: list[RemovalUnit] = [(one,) for one in candidates if not one.group.options.zero_or_max]
    whole = group_values((one.group.name, one) for one in candidates if one.group.options.zero_or_max)
    kept: list[KeptNode] = []
    for members in whole.values():
        group = members[0].group
        others = sorted(set(group.nodes).difference(group.deleting, (one.node.name for one in members)))
        if others:
            why = f"the node group {group.name} is removed as a whole or not at all, and {others[0]} stays"
            kept += (kept_node(one.node, group, f"{KeepReason.ATOMIC_SCALE_DOWN_FAILED}: {why}") for one in members)
        else:
            units.append(tuple(sorted(members, key=_order)))
    return tuple(sorted(units, key=lambda unit: max(map(_order, unit)))), kept


def _order(candidate: RemovalCandidate) -> tuple[int, float, float, str]:
    plan = candidate.plan
    stage = 2 if not plan.is_empty else 1 if plan.awaited else 0
    since = math.inf if candidate.since is None else candidate.since
    return stage, since, candidate.utilization.ratio, candidate.node.name


def _destinations(shares: Mapping[str, float], units: Iterable[RemovalUnit]) -> tuple[str, ...]:
    candidates = [one.node.name for unit in units for one in unit]
    stay = sorted(shares.keys() - set(candidates), key=lambda name: (-shares[name], name))
    return (*stay, *(name for name in reversed(candidates) if name in shares))
