"""Removal of nodes in a replay: when nodes are checked, and which are removed."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import structs

from recommender.replay.cluster.situations import removals_need_whole_cluster
from recommender.replay.simulation.decisions import removals_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.replay.cluster.replay_facts import Scene
    from recommender.replay.simulation.policy_run import PolicyRun

DRAIN_SECONDS: Final = 60.0
"""Time that draining a node with pods takes, after which the next node may be removed."""
LOOK_SECONDS: Final = 300.0
"""Longest time between two looks for removable nodes; the next one comes sooner if a node becomes due."""
SOON_SECONDS: Final = 60.0
"""Time until the next look if nodes are starting."""
DRAINS: Final = 5
"""One look may remove this many times as many nodes as `run` does at once; the next waits until those are drained."""
_NOTICED_SECONDS: Final = 5.0
"""Mean time until `run`, which decides every 10 s, notices that a node has been unneeded for longer than the limit."""
_SPARE: Final = 2
"""How many more nodes with pods one look checks than it may remove, as some of them perhaps cannot be emptied."""
_MOST_WITH_PODS: Final = 20
"""The most nodes with pods that one look checks, even if it may remove more."""
_MOST_EMPTY: Final = 100
"""The most nodes without pods that one look checks; their check is faster."""
_DESTINATIONS_EACH: Final = 2
"""How many nodes pods may move to for each node with pods that is checked: those with the most room. Twice as many if
one of the checked nodes could not be emptied before."""
_FEWEST_DESTINATIONS: Final = 12
_DESTINATIONS_WITH_FUTURE_PODS: Final = 40
"""How many nodes pods may move to if pods are expected or a reserve is kept."""


class Removals:
    """Chooses the nodes to remove."""

    def __init__(self, run: PolicyRun) -> None:
        self._run = run
        self._low_since = np.zeros(0)
        """Since when the node of each slot has been underutilised enough to be removed; NaN for other slots."""
        self._refused: dict[int, float] = {}
        """When the node of each slot last could not be emptied; nodes without an entry are checked first."""
        scene, down = run.scene, run.settings.scale_down
        self._limits = np.array(
            [_limit(scene, kind.group, down.utilization_threshold_ratio) for kind in scene.node_kinds]
        )
        """The utilisation up to which a node may be removed, by kind of node."""
        self._unneeded = _NOTICED_SECONDS + np.array(
            [_unneeded_seconds(scene, kind.group, down.unneeded_seconds) for kind in scene.node_kinds]
        )
        """How long a node must be unneeded to be removed, by kind of node."""
        self._looked_at: list[int] = []

    def forget(self, slot: int) -> None:
        """Forget a removed node, since its slot may get another node."""
        if slot < len(self._low_since):
            self._low_since[slot] = np.nan
        self._refused.pop(slot, None)

    def look(self, now: float, *, is_covered: bool) -> tuple[list[int], float]:
        """Return the slots of the nodes to remove now, and when to look again.

        The decision is made only if it could remove a node: some node has been underutilised for long enough, no
        cool-down is in effect, no node is starting, and growth has been decided for all pending pods.
        """
        run, down = self._run, self._run.settings.scale_down
        fleet, scheduler = run.fleet, run.scheduler
        self._note_low(now)
        if fleet.has_unusable() or not is_covered:
            return [], now + SOON_SECONDS
        added = run.memory.last_scale_up
        ready = -math.inf if added is None else added + down.delay_after_add_seconds
        dues = self._dues()
        known = dues[~np.isnan(dues)]
        soonest = max(ready, float(known.min(initial=math.inf)))
        candidates = self._candidates(now) if down.enabled and soonest <= now else []
        if not candidates or (not scheduler.has_changed and candidates == self._looked_at):
            later = float(known.min(where=known > now, initial=math.inf))
            return [], min(now + LOOK_SECONDS, later, ready if ready > now else math.inf)
        scheduler.has_changed, self._looked_at = False, candidates
        due = self._slots_to_remove(candidates, now)
        drained = sum(bool(fleet.pods[slot]) for slot in due)
        has_others = self._has_others(now, due)
        return due, now + (max(drained * DRAIN_SECONDS, SOON_SECONDS) if due or has_others else LOOK_SECONDS)

    def _has_others(self, now: float, due: Sequence[int]) -> bool:
        """Whether no node is due and some candidates have not been checked recently, as one look covers only a few."""
        return not due and any(self._refused.get(slot, 0.0) < now - LOOK_SECONDS for slot in self._candidates(now))

    def _slots_to_remove(self, candidates: Sequence[int], now: float) -> list[int]:
        """Decide, and return the slots of the candidates that are removed."""
        run = self._run
        slots = {run.situations.node(slot).name: slot for slot in candidates}
        since = {name: self._low_since.item(slot) for name, slot in slots.items()}
        memory = structs.replace(run.memory, unneeded_since=since)
        destinations = self._destinations(candidates, now)
        situation = run.situations.removal_situation(candidates, destinations, now, memory)
        expected = run.expected.placed_on(now, (*candidates, *destinations))
        future = (*expected, *run.reserve.pods(now))
        situation = replace(situation, future_pods=future) if future else situation
        answer = removals_of(situation, run.settings, run.shapes)
        run.memory = structs.replace(
            memory, unneeded_since=dict(answer.unneeded_since), unremovable_until=dict(answer.unremovable_until)
        )
        for name, slot in slots.items():
            if name not in answer.unneeded_since:
                self._refused[slot] = now
        return [slots[removal.node] for removal in answer.removals if removal.is_due and removal.node in slots]

    def _note_low(self, now: float) -> None:
        """Note which nodes could be removed, including all nodes that the decision would find underutilised."""
        fleet, down = self._run.fleet, self._run.settings.scale_down
        cores, memory = fleet.shares()
        limits = self._limits[fleet.kind_of[: fleet.end]]
        is_exempt = down.ignore_daemon_sets_utilization or down.ignore_mirror_pods_utilization
        low = fleet.usable[: fleet.end] & (limits >= (0 if is_exempt else np.maximum(cores, memory)))
        if self._run.reserve.is_wanted:
            low &= self._run.reserve.removable(now)
        since = np.full(fleet.end, np.nan)
        since[: len(self._low_since)] = self._low_since
        self._low_since = np.where(low, np.where(np.isnan(since), now, since), np.nan)

    def _dues(self) -> FloatArray:
        """Return when the node of each slot will have been unneeded for long enough; NaN for needed nodes."""
        fleet = self._run.fleet
        return np.asarray(self._low_since + self._unneeded[fleet.kind_of[: fleet.end]])

    def _candidates(self, now: float) -> list[int]:
        """Return the slots of the nodes to check: some of those that have been underutilised for long enough.

        The longest unneeded come first, but nodes that recently could not be emptied come last.
        """
        slots = np.flatnonzero(self._dues() <= now).tolist()
        slots.sort(key=lambda slot: (self._refused.get(slot, 0.0), self._low_since[slot], slot))
        if self._has_future_pods(now):
            # These take the room of the checked nodes first: with few of those, hardly one could be emptied.
            return slots[:_MOST_WITH_PODS]
        pods, down = self._run.fleet.pods, self._run.settings.scale_down
        empty = (slot for slot in slots if not pods[slot])
        others = (slot for slot in slots if pods[slot])
        return [
            *islice(empty, min(down.max_parallelism, _MOST_EMPTY)),
            *islice(others, min(down.max_drain_parallelism + _SPARE, _MOST_WITH_PODS)),
        ]

    def _destinations(self, candidates: Sequence[int], now: float) -> list[int]:
        """Return the slots of nodes to which pods may move: all nodes if they matter, or those with the most room."""
        fleet = self._run.fleet
        if removals_need_whole_cluster(self._run.settings):
            there = fleet.exists[: fleet.end].copy()
            there[list(candidates)] = False
            return [int(slot) for slot in np.flatnonzero(there)]
        cores, memory = fleet.shares()
        shares = np.where(fleet.usable[: fleet.end], np.maximum(cores, memory), np.inf)
        shares[list(candidates)] = np.inf
        order = np.argsort(shares, kind="stable")[: self._most_destinations(candidates, now)]
        return [int(slot) for slot in order if shares[slot] < 1.0]

    def _most_destinations(self, candidates: Sequence[int], now: float) -> int:
        if self._has_future_pods(now):
            return _DESTINATIONS_WITH_FUTURE_PODS
        with_pods = sum(bool(self._run.fleet.pods[slot]) for slot in candidates)
        most = max(_FEWEST_DESTINATIONS, _DESTINATIONS_EACH * with_pods)
        return most if self._refused.keys().isdisjoint(candidates) else 2 * most

    def _has_future_pods(self, now: float) -> bool:
        """Whether pods are expected, or a reserve may be kept."""
        return removals_need_whole_cluster(self._run.settings) or self._run.expected.are_wanted(now)


def with_drains(settings: ClusterSizeSettings) -> ClusterSizeSettings:
    """Return settings with which one look removes as many nodes as `run` does while those nodes are drained."""
    down = settings.scale_down
    return replace(
        settings,
        scale_down=replace(
            down,
            max_parallelism=down.max_parallelism * DRAINS,
            max_drain_parallelism=down.max_drain_parallelism * DRAINS,
        ),
    )


def _limit(scene: Scene, group: str, threshold: float) -> float:
    """Return the utilisation up to which nodes of a group may be removed; negative if they may never be removed."""
    if not group:
        return -1.0
    options = next(one.options for one in scene.groups.groups if one.name == group)
    own = options.utilization_threshold_ratio
    has_gpu = any("gpu" in name for name in scene.node_kinds[scene.new_kinds[group]].offered)
    return math.inf if has_gpu else threshold if own is None else own


def _unneeded_seconds(scene: Scene, group: str, seconds: float) -> float:
    """Return how long nodes of a group must be unneeded before they may be removed."""
    own = next((one.options.unneeded_seconds for one in scene.groups.groups if one.name == group), None)
    return seconds if own is None else own
