"""Puts the snapshot into the state from which sizes are decided, and says which groups may grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.reports.counts import agreeing, count_of
from recommender.decisions.texts.times import rfc3339
from recommender.kinds.cluster_size.health.cluster_health import NodeReadiness, health_problem, readiness_of
from recommender.kinds.cluster_size.health.requested_nodes import GroupRequest, requests_of
from recommender.kinds.cluster_size.health.starting_nodes import starting_nodes
from recommender.kinds.cluster_size.model.answer import SizeStep
from recommender.kinds.cluster_size.predicates.template_nodes import add_new_nodes, make_ready
from recommender.kinds.cluster_size.resource_limits import quota_of
from recommender.kinds.cluster_size.scale_down.eligibility import is_being_deleted
from recommender.kinds.cluster_size.scale_up.pending_pods import deleting_nodes
from recommender.kinds.cluster_size.scale_up.scale_up_state import SizingState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot

NO_TEMPLATE = "it has neither a ready node nor a template, so the capacity of a new node is not known"


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """Facts about nodes besides their capacity."""

    problem: str
    """Why nothing may be decided; empty if the cluster is healthy."""
    readiness: Mapping[str, NodeReadiness]
    starting: Mapping[str, str]
    """The nodes that are on their way, with what each is waiting for."""
    requests: Mapping[str, GroupRequest]
    memory: ClusterSizeMemory | None
    """The memory with the current back-offs and requests; None if nothing changed."""


def health_of(situation: ClusterSituation, settings: ClusterSizeSettings) -> ClusterHealth:
    """Return the health of the cluster, and the nodes on their way."""
    starting = starting_nodes(situation, settings)
    readiness = readiness_of(situation.nodes, situation.groups.group_of, deleting_nodes(situation), starting)
    unready = sum(state.unready for state in readiness.values())
    total = sum(state.total for state in readiness.values())
    requests, memory = requests_of(situation, settings, readiness)
    return ClusterHealth(health_problem(unready, total, settings.unready), readiness, starting, requests, memory)


def left_out_groups(situation: ClusterSituation) -> dict[str, str]:
    """Return the groups that are left out, with the reason."""
    return {
        group.name: group.problem or NO_TEMPLATE
        for group in situation.groups.groups
        if group.problem or group.template is None
    }


def sizing_state(situation: ClusterSituation, settings: ClusterSizeSettings, health: ClusterHealth) -> SizingState:
    """Return sizes and limits before anything is added; nodes on their way count for limits like those that exist."""
    left_out = left_out_groups(situation)
    groups = {group.name: group for group in situation.groups.groups if group.name not in left_out}
    counted: list[ClusterNode] = []
    for node in situation.nodes:
        its = groups.get(situation.groups.group_of.get(node.name, "")) if node.name in health.starting else None
        # GPUs that cannot be allocated yet also count for limits.
        counted.append(node if its is None or its.template is None else its.template.node)
    for name, group in groups.items():
        if group.template is not None:
            counted += [group.template.node] * health.requests[name].missing
    state = SizingState(
        groups=groups,
        sizes={name: health.requests[name].size for name in groups},
        quota=quota_of(settings.limits, counted),
        most_nodes_per_scale_up=settings.max_nodes_per_scale_up,
        obstacles=_obstacles(situation, settings, groups.values(), health),
        unwritten=frozenset(name for name, group in groups.items() if group.paused and situation.writes_sizes),
    )
    for name, group in groups.items():
        _put_right(state, group, health.requests[name])
    return state


def _put_right(state: SizingState, group: NodeGroup, request: GroupRequest) -> None:
    lost = group.target_size - request.size
    if lost > 0:
        nodes = f"{count_of(group.target_size, 'node')} {agreeing(lost, 'was', 'were')}"
        detail = f"{lost} of {nodes} requested and did not join in time"
        state.increases[group.name] -= lost
        state.steps.append(SizeStep("maxNodeProvisionTime", group.name, request.size, detail))
        state.reasons[group.name] = [f"{detail}, so the size is corrected"]


def _obstacles(
    situation: ClusterSituation, settings: ClusterSizeSettings, groups: Iterable[NodeGroup], health: ClusterHealth
) -> dict[str, str]:
    back_offs = (health.memory or situation.memory).back_offs
    found: dict[str, str] = {}
    for group in groups:
        back_off = back_offs.get(group.name)
        state = health.readiness.get(group.name, NodeReadiness())
        unhealthy = health_problem(state.unready, state.total, settings.unready)
        if back_off is not None and situation.now < back_off.until:
            found[group.name] = f"it is backing off until {rfc3339(back_off.until)}: {back_off.reason}"
        elif unhealthy:
            found[group.name] = f"it is not healthy: {unhealthy}"
        elif group.held:
            found[group.name] = group.held
    return found


def evict_present(snapshot: Snapshot, pods: Iterable[ClusterPod]) -> None:
    """Evict those of the pods that the snapshot has on a node."""
    for pod in pods:
        info = snapshot.nodes.get(pod.node)
        if info is not None and (pod.namespace, pod.name) in info.pods:
            snapshot.evict(pod)


def add_upcoming(situation: ClusterSituation, snapshot: Snapshot, state: SizingState, health: ClusterHealth) -> None:
    """Put starting nodes into the state of their template, and add those that were requested and do not exist yet."""
    for node in situation.nodes:
        if node.name not in health.starting:
            continue
        group = state.groups.get(situation.groups.group_of.get(node.name, ""))
        if group is None or group.template is None or node.name not in snapshot.nodes:
            continue
        if not node.unschedulable and not is_being_deleted(node, group):
            make_ready(snapshot, node, group.template)
    for name, group in state.groups.items():
        added = add_new_nodes(snapshot, group, health.requests[name].missing, "upcoming")
        state.requested_nodes |= {info.node.name: name for info in added}
