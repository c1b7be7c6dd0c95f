"""The situations for which a replay makes the decision of `run`, reduced as far as the answer stays the same.

A node on which no pending pod fits does not affect which groups grow, and a node that is neither removed nor has room
does not affect which nodes are removed. So such nodes are left out, and the sizes and limits of their groups are
lowered accordingly; a test compares the answers with those for the whole cluster. With settings that concern the whole
cluster (a reserve, limits, similar groups), a situation has all nodes. Pods that cannot move are not listed: of these,
only the sum of their requests matters.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL
from adapter.foundation.cluster.values.pods import ClusterPod, SchedulingFacts
from adapter.foundation.objects.grouping import group_values
from recommender.kinds.cluster_size.known_cluster import CONTROLLERS
from recommender.kinds.cluster_size.model.groups import NodeGroups
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, SizeLimits
from recommender.kinds.cluster_size.model.size_situation import ClusterSituation, UnlistedPods
from recommender.replay.cluster.fleet import PODS, NodeFleet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
    from recommender.replay.cluster.replay_facts import Scene


def removals_need_whole_cluster(settings: ClusterSizeSettings) -> bool:
    """Return whether removals depend even on nodes with little room, as with a reserve or with minimum amounts."""
    limits = settings.limits
    return bool(settings.headroom_ratio or settings.schedules or limits.min_cores or limits.min_memory_bytes)


def needs_whole_cluster(settings: ClusterSizeSettings) -> bool:
    """Return whether the growth of groups depends on nodes on which no pending pod fits."""
    return bool(
        settings.headroom_ratio
        or settings.schedules
        or settings.balance_similar_node_groups
        or settings.limits != SizeLimits()
    )


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """The size and the limits that a group has in a situation."""

    target_size: int
    min_size: int
    max_size: int


class Situations:
    """Builds the situations of one policy's fleet."""

    def __init__(
        self, scene: Scene, settings: ClusterSizeSettings, fleet: NodeFleet, closed: frozenset[str] = frozenset()
    ) -> None:
        """Begin without nodes; `closed` are the groups that get no nodes."""
        self._scene = scene
        self.closed = closed
        self._settings = settings
        self._fleet = fleet
        self._is_whole = needs_whole_cluster(settings)
        self._names: dict[int, ClusterNode] = {}
        self._daemons: dict[int, tuple[ClusterPod, ...]] = {}
        self._unlisted: dict[int, tuple[bytes, UnlistedPods]] = {}
        """The pods of each slot's node as a sum, after the free amounts for which it was calculated."""
        self._facts: dict[tuple[int, float], SchedulingFacts] = {}
        """The facts of pending pods, by their kind and the time since which they have been waiting."""
        self._running: dict[int, dict[int, ClusterPod]] = {}
        """For each slot, the pods that its node had when its removal was last considered, by number."""

    def note_node(self, slot: int, node: ClusterNode) -> None:
        """Note the node that a slot has now."""
        self._names[slot] = node
        self._running.pop(slot, None)
        self._unlisted.pop(slot, None)
        daemons = self._fleet.kinds[self._fleet.kind_of[slot]].daemons
        self._daemons[slot] = tuple(
            replace(pod, name=f"{node.name}-{place}", node=node.name, phase="Running")
            for place, pod in enumerate(daemons)
        )

    def node(self, slot: int) -> ClusterNode:
        """Return the node of a slot."""
        return self._names[slot]

    def grown(self, pending: Mapping[int, float], now: float, memory: ClusterSizeMemory) -> ClusterSituation:
        """Return the situation that decides which groups grow: the nodes that are starting, and the pending pods.

        `pending` has the time since which each pod has been waiting. It contains no pods that fit on a ready node.
        """
        self._facts.clear()
        slots = self.growing_slots()
        pods = [self.pod(number, "", since) for number, since in pending.items()]
        return self._situation(slots, pods, now, memory, unlisted=slots)

    def growing_slots(self) -> list[int]:
        """Return the slots of the nodes that affect growth: starting nodes, or all nodes if the settings need them."""
        fleet = self._fleet
        there = fleet.exists[: fleet.end]
        if not self._is_whole:
            there = there & ~fleet.usable[: fleet.end]
        return np.flatnonzero(there).tolist()

    def loads(self, slots: Sequence[int]) -> tuple[tuple[int, bytes], ...]:
        """Return, for each slot, the kind of its node and the free amounts."""
        fleet = self._fleet
        return tuple((fleet.kind_of.item(slot), fleet.free[:, slot].tobytes()) for slot in slots)

    def removal_situation(
        self, candidates: Sequence[int], others: Sequence[int], now: float, memory: ClusterSizeMemory
    ) -> ClusterSituation:
        """Return the situation that decides which candidates are removed: candidates with their pods, and `others`."""
        pods: list[ClusterPod] = []
        for slot in candidates:
            pods += self._daemons[slot]
            name, before = self._names[slot].name, self._running.get(slot, {})
            here = {number: before.get(number) or self.pod(number, name, 0.0) for number in self._fleet.pods[slot]}
            self._running[slot] = here
            pods += here.values()
        slots = [*candidates, *others]
        if removals_need_whole_cluster(self._settings):
            # A reserve is put on nodes in their order, which the order of the candidates must not change.
            slots.sort()
        names = frozenset(self._names[slot].name for slot in candidates)
        return self._situation(slots, pods, now, memory, unlisted=others, candidates=names)

    def _situation(
        self,
        slots: Sequence[int],
        pods: Iterable[ClusterPod],
        now: float,
        memory: ClusterSizeMemory,
        *,
        unlisted: Iterable[int],
        candidates: frozenset[str] | None = None,
    ) -> ClusterSituation:
        nodes = tuple(self._names[slot] for slot in slots)
        return ClusterSituation(
            now=now,
            nodes=nodes,
            pods=tuple(pods),
            groups=self._groups(slots),
            # Their objects are not recorded.
            assumed_controllers=CONTROLLERS,
            namespace_labels={},
            memory=memory,
            explains=False,
            candidates=candidates,
            unlisted_pods={self._names[slot].name: self._pods_of(slot) for slot in unlisted},
            other_nodes=self.size() - len(nodes),
        )

    def _groups(self, slots: Sequence[int]) -> NodeGroups:
        """Return the groups with only the nodes of these slots; each other node lowers the limits of its group."""
        fleet = self._fleet
        group_of = {self._names[slot].name: fleet.kinds[fleet.kind_of.item(slot)].group for slot in slots}
        group_of = {name: group for name, group in group_of.items() if group}
        members = group_values((group, name) for name, group in group_of.items())
        limits = self.limits(slots)
        groups = tuple(
            replace(
                group,
                nodes=tuple(members.get(group.name, ())),
                deleting=(),
                target_size=limits[group.name].target_size,
                min_size=limits[group.name].min_size,
                max_size=limits[group.name].max_size,
            )
            for group in self._scene.groups.groups
        )
        return NodeGroups(groups, group_of)

    def limits(self, slots: Sequence[int]) -> dict[str, GroupLimits]:
        """Return, by group, the size and the limits if only the nodes of these slots are counted."""
        fleet, sizes = self._fleet, self.sizes()
        counted = Counter(fleet.kinds[fleet.kind_of.item(slot)].group for slot in slots)
        found: dict[str, GroupLimits] = {}
        for group in self._scene.groups.groups:
            size = counted[group.name]
            absent = sizes[group.name] - size
            least, most = (0, 0) if group.name in self.closed else (group.min_size, group.max_size)
            found[group.name] = GroupLimits(size, max(0, least - absent), max(0, most - absent))
        return found

    def size(self) -> int:
        """Return how many nodes there are."""
        return sum(self._fleet.counts)

    def sizes(self) -> Counter[str]:
        """Return how many nodes each group has."""
        fleet, sizes = self._fleet, Counter[str]()
        for kind, number in zip(fleet.kinds, fleet.counts, strict=True):
            sizes[kind.group] += number
        return sizes

    def new_node(self, group: str, name: str, now: float) -> ClusterNode:
        """Return a node from the group's template."""
        node = self._fleet.kinds[self._scene.new_kinds[group]].node
        return replace(
            node,
            name=name,
            labels={**node.labels, HOSTNAME_LABEL: name},
            conditions={"Ready": "True"},
            created=now,
            unschedulable=False,
        )

    def pod(self, number: int, node: str, since: float) -> ClusterPod:
        """Return a pod of the recording; for a pod without a node, `since` counts as the time of its creation."""
        kind = self._scene.recording.pods[number].kind
        like = self._scene.recording.pod_kinds[kind]
        facts = like.facts
        if not node and facts is not None:
            known = self._facts.get((kind, since))
            facts = known or replace(facts, created=since)
            self._facts[kind, since] = facts
        return ClusterPod(
            namespace=like.namespace,
            name=f"pod-{number}",
            uid="",
            node=node,
            labels=like.labels,
            controller=like.controller,
            phase="Running" if node else "Pending",
            is_terminating=False,
            bound_at=None,
            ended_at=None,
            priority=like.priority,
            resources=like.resources,
            facts=facts,
        )

    def _pods_of(self, slot: int) -> UnlistedPods:
        """Return all pods of a slot's node as a sum, with those of DaemonSets."""
        free = self._fleet.free[:, slot].tobytes()
        known = self._unlisted.get(slot)
        if known is None or known[0] != free:
            known = self._unlisted[slot] = free, self._counted_pods(slot)
        return known[1]

    def _counted_pods(self, slot: int) -> UnlistedPods:
        taken = (self._fleet.offered[:, slot] - self._fleet.free[:, slot]).tolist()
        requested = {name: int(amount) for name, amount in zip(self._scene.resources, taken, strict=True) if amount}
        return UnlistedPods(requested, requested.pop(PODS, 0))
