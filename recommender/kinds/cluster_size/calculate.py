"""The whole decision on a cluster's size: what pending pods need, which nodes are removed, and the sizes of groups."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from adapter.foundation.cluster.values.constraints import TaintEffect
from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.anti_affinity_work_limit import within_term_bound
from recommender.kinds.cluster_size.health.cluster_health import with_readiness_taint
from recommender.kinds.cluster_size.health.failed_machines import failed_machines, with_machines_seen
from recommender.kinds.cluster_size.health.starting_nodes import starting_nodes
from recommender.kinds.cluster_size.model.answer import SCALE_DOWN, ClusterSizeAnswer, GroupSize, savings_per_hour
from recommender.kinds.cluster_size.model.pod_places import NodeState, PlaceKind, UnavailableNode
from recommender.kinds.cluster_size.predicates.snapshot import snapshot_of
from recommender.kinds.cluster_size.scale_down.decide import scale_down
from recommender.kinds.cluster_size.scale_down.removal_candidates import nodes_being_deleted
from recommender.kinds.cluster_size.scale_up.decide import scale_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.answer import ScaleDownAnswer, ScaleUp
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
    from recommender.kinds.cluster_size.model.pod_places import PodName, PodPlace
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.model.taints import PassingTaints


def decide_size(situation: ClusterSituation, settings: ClusterSizeSettings) -> ClusterSizeAnswer:
    """Return the answer, before brakes. Broken data is named in the answer; it never raises an exception."""
    bound = within_term_bound(situation.pods, (*situation.nodes, *_templates(situation)))
    nodes = tuple(map(with_readiness_taint, situation.nodes))
    situation = dataclasses.replace(situation, nodes=nodes, pods=bound.pods)
    snapshot = snapshot_of(situation)
    scaled = scale_up(situation, settings, snapshot)
    lowered = scale_down(situation, settings, snapshot, scaled)
    failed = failed_machines(situation, settings, scaled, lowered.removals)
    due = Counter(removal.group for removal in lowered.removals if removal.is_due)
    return ClusterSizeAnswer(
        groups=tuple(_group_size(group, scaled, lowered, due) for group in situation.groups.groups),
        removals=lowered.removals,
        kept=lowered.kept,
        failed_machines=failed,
        unschedulable=scaled.unschedulable,
        expected=_unplaced_future_pods(situation, scaled),
        places=_final_places(scaled.places, lowered, situation),
        unavailable=unavailable_nodes(situation, settings),
        displaced=_displaced_from(situation, scaled),
        waiting=scaled.waiting,
        waits_until=scaled.waits_until,
        steps=scaled.steps,
        binding=scaled.binding or (SCALE_DOWN if due else None),
        bound=scaled.bound,
        advice=lowered.advice,
        saved_per_hour=savings_per_hour(lowered.removals),
        pending_pods=_count_pending_pods(scaled),
        notes=(*situation.groups.problems, *bound.notes),
        hold=scaled.hold,
        memory=_memory(situation, scaled, lowered),
    )


def _templates(situation: ClusterSituation) -> tuple[ClusterNode, ...]:
    return tuple(group.template.node for group in situation.groups.groups if group.template is not None)


def _group_size(group: NodeGroup, scaled: ScaleUp, lowered: ScaleDownAnswer, due: Mapping[str, int]) -> GroupSize:
    recommended = group.target_size + (0 if group.problem else scaled.increases.get(group.name, 0))
    return GroupSize(
        name=group.name,
        current=group.target_size,
        recommended=recommended,
        after_removals=recommended - due.get(group.name, 0),
        min_size=group.min_size,
        max_size=group.max_size,
        reason=group.problem or _reason(group, scaled, lowered, due.get(group.name, 0)),
        is_left_out=bool(group.problem),
        scalable=group.scalable,
        registered=len(group.nodes),
    )


def _reason(group: NodeGroup, scaled: ScaleUp, lowered: ScaleDownAnswer, due: int) -> str:
    parts = [scaled.reasons.get(group.name, "")]
    if due:
        parts.append(f"{count_of(due, 'removable node')}")
    elif lowered.hold and any(removal.group == group.name for removal in lowered.removals):
        # The whole reason is stated once, with the removals.
        parts.append(f"no node is removed now: {lowered.hold.partition(':')[0]}")
    text = "; ".join(part for part in parts if part)
    return text or scaled.hold or "no pending pod needs it"


def _final_places(
    places: Iterable[PodPlace], lowered: ScaleDownAnswer, situation: ClusterSituation
) -> tuple[PodPlace, ...]:
    """Return the places; where the node is removed now, the place is the one that the removal's simulation found."""
    going = {removal.node for removal in lowered.removals if removal.is_due}
    if not going:
        return tuple(places)
    real = {node.name for node in situation.nodes}

    def final(place: PodPlace) -> PodPlace:
        node = lowered.new_nodes.get((place.pod.namespace, place.pod.name))
        if place.kind is not PlaceKind.EXISTING or place.node not in going or node not in real:
            return place
        return dataclasses.replace(place, node=node, group=situation.groups.group_of.get(node, ""))

    return tuple(map(final, places))


def _unplaced_future_pods(situation: ClusterSituation, scaled: ScaleUp) -> frozenset[PodName]:
    """Return the pods without a place that do not exist."""
    future = {(pod.namespace, pod.name) for pod in situation.future_pods}
    pods = (pod for alike in scaled.unschedulable for pod in alike.pods)
    return frozenset(pod for pod in pods if (pod.namespace, pod.name) in future)


def _displaced_from(situation: ClusterSituation, scaled: ScaleUp) -> dict[PodName, str]:
    """For each pod that a what-if question displaces and that finds no other node, return the removed node."""
    sources = situation.displaced_pods
    if not sources:
        return {}
    without_place = (*(pod for alike in scaled.unschedulable for pod in alike.pods), *scaled.waiting)
    places = ((pod, sources.get((pod.namespace, pod.name))) for pod in without_place)
    return {pod: node for pod, node in places if node is not None}


def _count_pending_pods(scaled: ScaleUp) -> int:
    return (
        scaled.fitting_pods
        + scaled.helped_pods
        + len(scaled.waiting)
        + sum(len(alike.pods) for alike in scaled.unschedulable)
    )


def _memory(situation: ClusterSituation, scaled: ScaleUp, lowered: ScaleDownAnswer) -> ClusterSizeMemory:
    return replace(
        with_machines_seen(scaled.memory or situation.memory, situation),
        unneeded_since=dict(lowered.unneeded_since),
        unremovable_until=dict(lowered.unremovable_until),
    )


def unavailable_nodes(situation: ClusterSituation, settings: ClusterSizeSettings) -> tuple[UnavailableNode, ...]:
    """Return the nodes that take no pods now, in the order of the cluster, each with its most permanent state."""
    deleting = nodes_being_deleted(situation)
    starting = starting_nodes(situation, settings)
    found: list[UnavailableNode] = []
    for node in situation.nodes:
        group = situation.groups.group_of.get(node.name, "")
        if node.name in deleting:
            found.append(UnavailableNode(node.name, group, NodeState.DELETING))
        elif node.unschedulable:
            found.append(UnavailableNode(node.name, group, NodeState.CORDONED))
        elif node.name in starting:
            found.append(UnavailableNode(node.name, group, NodeState.STARTING, starting[node.name]))
        elif not node.ready:
            found.append(UnavailableNode(node.name, group, NodeState.NOT_READY))
        elif taint := _lasting_taint(node, settings.passing_taints):
            detail = f"it has the start-up taint {taint}, and is older than maxNodeProvisionTime"
            found.append(UnavailableNode(node.name, group, NodeState.TAINTED, detail))
    return tuple(found)


def _lasting_taint(node: ClusterNode, passing: PassingTaints) -> str:
    """Return the start-up taint that keeps pods from a node that should have started; empty if there is none."""
    keeping = (taint for taint in node.taints if taint.effect in set(TaintEffect))
    return next((taint.key for taint in keeping if passing.is_startup(taint)), "")
