"""Decides which removable nodes are removed now, and what the others wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.objects.grouping import group_values
from adapter.foundation.reports.counts import agreeing, count_of
from recommender.kinds.cluster_size.scale_down.annotations import DELAY_DELETION
from recommender.kinds.cluster_size.scale_down.cool_down import cool_down
from recommender.kinds.cluster_size.scale_down.pod_kinds import is_daemon_set_pod, is_long_terminating, is_mirror_pod
from recommender.kinds.cluster_size.scale_down.reasons import Waiting, WaitReason
from recommender.kinds.cluster_size.scale_down.removal_budgets import GroupRemoval, within_budgets
from recommender.kinds.cluster_size.scale_down.removal_candidates import nodes_being_deleted
from recommender.kinds.cluster_size.scale_down.unneeded_times import unneeded_seconds, unneeded_waiting

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from recommender.kinds.cluster_size.model.answer import ScaleUp
    from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.scale_down.removal_candidates import RemovalCandidate
    from recommender.kinds.cluster_size.scale_down.removal_sequence import SimulatedRemoval


@dataclass(frozen=True, slots=True)
class WaitingNodes:
    """The reason for which each removable node waits."""

    hold: Waiting | None
    """The reason for which all nodes wait; None if there is none."""
    by_node: Mapping[str, tuple[Waiting, ...]]
    """The reasons of each node; empty for nodes that are removed now."""

    def is_due(self, name: str) -> bool:
        """Return whether a node is removed now."""
        return not self.by_node[name]


def waiting_nodes(
    situation: ClusterSituation,
    settings: ScaleDownSettings,
    scaled: ScaleUp,
    removed: Sequence[SimulatedRemoval],
    since: Mapping[str, float],
) -> WaitingNodes:
    """Return why each node waits. If the situation does not wait, neither time nor parallelism counts."""
    hold = _hold(situation, settings, scaled)
    waits: dict[str, list[Waiting]] = {}
    for one in removed:
        for candidate in one.unit:
            waits[candidate.node.name] = [
                *([hold] if hold else []),
                *_own_waits(candidate, situation, settings, since),
            ]
    for one in removed:
        _wait_together(one, waits)
    if situation.waits:
        _hold_beyond_budgets(situation, settings, removed, waits)
    return WaitingNodes(hold, {name: tuple(found) for name, found in waits.items()})


def _hold(situation: ClusterSituation, settings: ScaleDownSettings, scaled: ScaleUp) -> Waiting | None:
    """Return why no node is removed now; None if nodes may be removed."""
    if scaled.hold:
        return Waiting(WaitReason.SCALE_UP_HELD, scaled.hold)
    new = ", ".join(f"{count} of {name}" for name, count in sorted(scaled.increases.items()) if count > 0)
    if new:
        return Waiting(
            WaitReason.SCALE_UP_NEEDED,
            f"new nodes are needed ({new}), and no node is removed before they are there",
        )
    missing = ", ".join(_missing_nodes(situation))
    if missing:
        return Waiting(WaitReason.UPCOMING_NODES, f"requested nodes have not joined yet ({missing})")
    if scaled.new_pods:
        count, first = len(scaled.new_pods), scaled.new_pods[0]
        text = f"{count_of(count, 'pending pod')}, such as {first}, may still need the node"
        return Waiting(WaitReason.YOUNG_PENDING_PODS, text)
    if count := scaled.not_looked_at:
        pods = f"{count_of(count, 'pending pod')} {agreeing(count, 'has', 'have')}"
        text = f"{pods} not been evaluated yet, and may need the node"
        return Waiting(WaitReason.PENDING_PODS_NOT_LOOKED_AT, text)
    return cool_down(situation.memory, settings, situation.now) if situation.waits else None


def _missing_nodes(situation: ClusterSituation) -> Iterable[str]:
    """Yield the number of requested nodes that do not exist yet, by group."""
    if not situation.writes_sizes:
        return
    for group in situation.groups.groups:
        requested = situation.memory.requested.get(group.name)
        if requested is None or requested.are_late:
            continue
        missing = requested.size - len(group.nodes) - len(group.failures)
        if missing > 0:
            yield f"{missing} of {group.name}"


def _own_waits(
    candidate: RemovalCandidate, situation: ClusterSituation, settings: ScaleDownSettings, since: Mapping[str, float]
) -> Iterable[Waiting]:
    node = candidate.node
    for pod in candidate.plan.awaited[:1]:
        text = f"{pod.namespace}/{pod.name} must complete before the node is removed"
        yield Waiting(WaitReason.BLOCKED_BY_ON_COMPLETION_POD, text)
    provider = candidate.group.provider
    # A removal through a provider waits for these after the node is drained: many are taken off only then.
    waits_later = provider is not None and provider.deletes_nodes
    for key in () if waits_later else sorted(node.annotations):
        if key.startswith(DELAY_DELETION):
            yield Waiting(WaitReason.DELETION_DELAYED, f"the node has the annotation {key}")
            break
    if situation.waits:
        elapsed = unneeded_seconds(since[node.name], situation.memory, situation.now)
        waiting = unneeded_waiting(node, candidate.group, elapsed, settings)
        if waiting:
            yield waiting


def _wait_together(removal: SimulatedRemoval, waits: Mapping[str, list[Waiting]]) -> None:
    """Let all nodes of a group that is removed as a whole wait for each other."""
    names = [one.node.name for one in removal.unit]
    late = next((name for name in names if waits[name]), None)
    for name in names:
        if late is not None and not waits[name]:
            text = (
                f"the node group {removal.unit[0].group.name} is removed as a whole, and {late} cannot be removed yet"
            )
            waits[name].append(Waiting(WaitReason.ATOMIC_SCALE_DOWN_FAILED, text))


def _hold_beyond_budgets(
    situation: ClusterSituation,
    settings: ScaleDownSettings,
    removed: Sequence[SimulatedRemoval],
    waits: Mapping[str, list[Waiting]],
) -> None:
    """Let all nodes wait beyond the number that may be removed at the same time."""
    ready = [one for removal in removed for one in removal.unit if not waits[one.node.name]]
    empty = _by_group(one for one in ready if not one.plan.own)
    drained = _by_group(one for one in ready if one.plan.own)
    deleting = nodes_being_deleted(situation)
    most_drained = settings.max_drain_parallelism - _with_pods_to_move(situation, deleting)
    going = set(within_budgets(empty, drained, settings.max_parallelism - len(deleting), most_drained))
    most = settings.max_parallelism
    text = (
        f"at most {count_of(most, 'node')} {agreeing(most, 'is', 'are')} removed at a time, "
        f"and at most {settings.max_drain_parallelism} of them with pods to move"
    )
    for one in ready:
        if one.node.name not in going:
            waits[one.node.name].append(Waiting(WaitReason.PARALLELISM_REACHED, text))


def _by_group(candidates: Iterable[RemovalCandidate]) -> list[GroupRemoval]:
    members = group_values((one.group.name, one) for one in candidates)
    return [
        GroupRemoval(
            group=name,
            nodes=tuple(one.node.name for one in found),
            is_whole=found[0].group.options.zero_or_max,
            target_size=found[0].group.target_size,
            registered=len(found[0].group.nodes),
        )
        for name, found in members.items()
    ]


def _with_pods_to_move(situation: ClusterSituation, deleting: Container[str]) -> int:
    """Return how many of the nodes that are being deleted still have pods that move."""
    moving = (
        pod.node
        for pod in situation.pods
        if pod.node in deleting
        and not pod.has_ended
        and not is_daemon_set_pod(pod)
        and not is_mirror_pod(pod)
        and not is_long_terminating(pod, situation.now)
    )
    return len(set(moving))
