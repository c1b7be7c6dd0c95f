"""Decides which nodes are removed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.model.answer import Advice, KeptNode, Removal, ScaleDownAnswer
from recommender.kinds.cluster_size.model.pod_places import PodMove, pod_name
from recommender.kinds.cluster_size.scale_down.cheaper_alternatives import advice, staying_nodes
from recommender.kinds.cluster_size.scale_down.disruptions import RemainingDisruptions
from recommender.kinds.cluster_size.scale_down.drainability import DrainRules
from recommender.kinds.cluster_size.scale_down.minimum_sizes import Minimums
from recommender.kinds.cluster_size.scale_down.reasons import KeepReason, Waiting, WaitReason, duration_of, percent_of
from recommender.kinds.cluster_size.scale_down.removal_candidates import nodes_being_deleted, survey
from recommender.kinds.cluster_size.scale_down.removal_sequence import RemovalSequence, new_simulator, simulate
from recommender.kinds.cluster_size.scale_down.removals_due import WaitingNodes, waiting_nodes
from recommender.kinds.cluster_size.scale_down.replacement_nodes import Replacer
from recommender.kinds.cluster_size.scale_down.simulated_removal import Unremovable, final_nodes
from recommender.kinds.cluster_size.scale_down.unneeded_times import (
    UNREMOVABLE_SECONDS,
    recently_unremovable,
    unneeded_seconds,
    unneeded_since,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from recommender.kinds.cluster_size.model.answer import ScaleUp
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.predicates.node_info import PodKey
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
    from recommender.kinds.cluster_size.scale_down.removal_candidates import NodeSurvey, RemovalCandidate
    from recommender.kinds.cluster_size.scale_down.removal_sequence import SimulatedRemoval

_ADVISED: Final = {
    KeepReason.NOT_UNDERUTILIZED,
    KeepReason.NO_PLACE_TO_MOVE_PODS,
    KeepReason.RECENTLY_UNREMOVABLE,
    KeepReason.UNNEEDED_LIMIT_REACHED,
}
"""Reasons for which a node stays although it might be removed with others, or replaced by a smaller one."""


@dataclass(frozen=True, slots=True)
class _ConfirmedRemovals:
    """The nodes that are removed now, simulated without those that wait."""

    waiting: WaitingNodes
    nodes: Mapping[PodKey, str]
    """The final nodes of the pods whose nodes are removed now."""


def scale_down(
    situation: ClusterSituation, settings: ClusterSizeSettings, snapshot: Snapshot, scaled: ScaleUp
) -> ScaleDownAnswer:
    """Return which nodes are removed, which of them now, and why each of the others stays.

    The snapshot contains the placements of scale-up; it is unchanged afterwards.
    """
    if not settings.scale_down.enabled:
        return ScaleDownAnswer(hold="scaleDown.enabled is false: no node is removed")
    start = snapshot.checkpoint()
    budgets = RemainingDisruptions(situation.budgets)
    rules = DrainRules(settings.scale_down, situation.workloads, budgets, situation.now, situation.assumed_controllers)
    minimums = _minimums(situation, settings)
    found = survey(situation, settings, snapshot, rules, minimums)
    sequence = simulate(situation, settings.scale_down, snapshot, found, minimums)
    names = [one.node.name for removal in sequence.removed for one in removal.unit]
    since = unneeded_since(names, situation.memory.unneeded_since, situation.now) if situation.waits else {}
    waiting = waiting_nodes(situation, settings.scale_down, scaled, sequence.removed, since)
    confirmed = _confirm_removals(situation, snapshot, found, sequence.removed, waiting)
    waiting = confirmed.waiting
    prices = _prices(situation.groups)
    kept = _in_order(situation, (*found.kept, *sequence.kept))
    going = [one for one in sequence.removed if _is_due(one, waiting)]
    result = ScaleDownAnswer(
        removals=tuple(_removals(situation, sequence.removed, confirmed, since, prices)),
        kept=kept,
        advice=_advice(situation, snapshot, rules, found, (kept, going, prices, _growing_groups(situation, scaled)))
        if situation.explains and not waiting.hold
        else (),
        # Nodes that fail together mostly come back together: afterwards, each gets its whole time again.
        unneeded_since={} if scaled.hold else since,
        unremovable_until=_unremovable_until(situation, sequence),
        new_nodes=confirmed.nodes,
        hold=str(waiting.hold) if waiting.hold else "",
    )
    snapshot.revert(start)
    return result


def _advice(
    situation: ClusterSituation,
    snapshot: Snapshot,
    rules: DrainRules,
    found: NodeSurvey,
    decided: tuple[Sequence[KeptNode], Sequence[SimulatedRemoval], Mapping[str, float], Sequence[NodeGroup]],
) -> tuple[Advice, ...]:
    """Return cheaper alternatives to the nodes that only their utilisation or a missing place keeps."""
    kept, going, prices, groups = decided
    names = [one.node for one in kept if one.reason.partition(":")[0] in _ADVISED]
    nodes = staying_nodes(situation, snapshot, rules, names, prices)
    gone = Counter(one.group.name for removal in going for one in removal.unit)
    replacer = Replacer(snapshot, found.destinations, groups, prices, gone)
    disruptions = RemainingDisruptions(situation.budgets)
    disruptions.take(pod for removal in going for one in removal.unit for pod in one.plan.own)
    return advice(nodes, replacer, disruptions)


def _growing_groups(situation: ClusterSituation, scaled: ScaleUp) -> tuple[NodeGroup, ...]:
    """Return all groups; each that is backing off has this as its problem, since it would get no new node."""
    back_offs = (scaled.memory or situation.memory).back_offs
    return tuple(
        replace(group, problem="it is backing off")
        if group.name in back_offs and situation.now < back_offs[group.name].until
        else group
        for group in situation.groups.groups
    )


def _minimums(situation: ClusterSituation, settings: ClusterSizeSettings) -> Minimums:
    deleting = nodes_being_deleted(situation)
    groups = {group.name: group for group in situation.groups.groups}
    return Minimums(groups, [node for node in situation.nodes if node.name not in deleting], settings.limits)


def _confirm_removals(
    situation: ClusterSituation,
    snapshot: Snapshot,
    found: NodeSurvey,
    removed: tuple[SimulatedRemoval, ...],
    waiting: WaitingNodes,
) -> _ConfirmedRemovals:
    """Simulate the nodes that are removed now without those that wait, whose pods stay in place.

    Afterwards, the snapshot lacks the nodes that are removed now and has all others.
    """
    first = next((number for number, one in enumerate(removed) if not _is_due(one, waiting)), None)
    moves = [move for one in removed[:first] for move in one.moves]
    if first is None:
        return _ConfirmedRemovals(waiting, final_nodes(moves))
    snapshot.revert(removed[first].checkpoint)
    if not any(_is_due(one, waiting) for one in removed[first:]):
        return _ConfirmedRemovals(waiting, final_nodes(moves))
    disruptions = RemainingDisruptions(situation.budgets)
    disruptions.take(pod for one in removed[:first] for candidate in one.unit for pod in candidate.plan.own)
    simulator = new_simulator(snapshot, found.destinations, disruptions)
    by_node = dict(waiting.by_node)
    for one in removed[first:]:
        if not _is_due(one, waiting):
            continue
        result = simulator.remove([candidate.plan for candidate in one.unit])
        if isinstance(result, Unremovable):
            text = f"its pods fit elsewhere only after other nodes have been removed ({result.detail})"
            for candidate in one.unit:
                by_node[candidate.node.name] = (Waiting(WaitReason.NO_PLACE_TO_MOVE_PODS, text),)
        else:
            moves += result
    return _ConfirmedRemovals(replace(waiting, by_node=by_node), final_nodes(moves))


def _is_due(removal: SimulatedRemoval, waiting: WaitingNodes) -> bool:
    return all(waiting.is_due(one.node.name) for one in removal.unit)


def _prices(groups: NodeGroups) -> Mapping[str, float]:
    """Return the price by group; empty unless all groups that take part have one, as sums would be too small."""
    prices = {group.name: group.price for group in groups.groups if not group.problem}
    known = {name: price for name, price in prices.items() if price is not None}
    return known if len(known) == len(prices) else {}


def _removals(
    situation: ClusterSituation,
    removed: Sequence[SimulatedRemoval],
    confirmed: _ConfirmedRemovals,
    since: Mapping[str, float],
    prices: Mapping[str, float],
) -> Iterable[Removal]:
    waiting = confirmed.waiting
    in_sequence = final_nodes(move for removal in removed for move in removal.moves)
    for removal in removed:
        for one in removal.unit:
            name, since_then = one.node.name, since.get(one.node.name)
            unneeded = None if since_then is None else unneeded_seconds(since_then, situation.memory, situation.now)
            if not situation.explains:
                yield Removal(name, one.group.name, one.utilization.ratio, "", unneeded, is_due=waiting.is_due(name))
                continue
            nodes = confirmed.nodes if waiting.is_due(name) else in_sequence
            yield Removal(
                node=name,
                group=one.group.name,
                utilization_ratio=one.utilization.ratio,
                reason="; ".join(map(str, waiting.by_node[name])) or _unneeded_reason(one, unneeded),
                unneeded_seconds=unneeded,
                is_due=waiting.is_due(name),
                moves=tuple(PodMove(pod_name(pod), nodes[pod.namespace, pod.name]) for pod in one.plan.own),
                saved_per_hour=prices.get(one.group.name),
            )


def _unneeded_reason(candidate: RemovalCandidate, unneeded: float | None) -> str:
    share = f"{percent_of(candidate.utilization.ratio)} of {candidate.utilization.resource} is requested"
    count = len(candidate.plan.own)
    pods = f"its {count} pods fit" if count > 1 else "its pod fits" if count else ""
    moved = f", and {pods} on other nodes" if pods else ", and no pod must move"
    ready = "" if candidate.node.ready else "the node is not ready; "
    waited = f" for {duration_of(unneeded)}" if unneeded else ""
    return f"unneeded{waited}: {ready}{share}{moved}"


def _in_order(situation: ClusterSituation, kept: Iterable[KeptNode]) -> tuple[KeptNode, ...]:
    """Return the nodes in the order of the cluster."""
    by_name = {one.node: one for one in kept}
    names = dict.fromkeys(node.name for node in situation.nodes)
    return tuple(by_name[name] for name in names if name in by_name)


def _unremovable_until(situation: ClusterSituation, sequence: RemovalSequence) -> dict[str, float]:
    """Return until when nodes are not simulated again, by node; times that have passed are forgotten."""
    if not situation.waits:
        return {}
    now, memory = situation.now, situation.memory.unremovable_until
    names = (node.name for node in situation.nodes)
    before = {name: recently_unremovable(name, memory, now) for name in names if name in memory}
    kept = {name: until for name, until in before.items() if until is not None}
    return kept | dict.fromkeys(sorted(sequence.failed), now + UNREMOVABLE_SECONDS)
