"""One policy on the recorded past: events in their order, and the decision of `run` where it could change a size."""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from enum import IntEnum, auto
from itertools import count
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import structs

from recommender.kinds.cluster_size.calculate import decide_size
from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
from recommender.replay.fleet import NodeFleet
from recommender.replay.outcome import Account
from recommender.replay.situations import Situations

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recommender.replay.fleet import PodNeeds
    from recommender.replay.outcome import PolicyOutcome
    from recommender.replay.policies import ReplayPolicy
    from recommender.replay.scene import Scene

REACTION_SECONDS: Final = 3.0
"""From a pod that fits nowhere to the size that is written."""
DRAIN_SECONDS: Final = 60.0
"""A node with pods is drained in this time, and the next one may go."""
_LOOK_SECONDS: Final = 300.0
"""Nodes that could go are looked for this often, and whenever one has been unneeded for long enough."""
_SOON_SECONDS: Final = 60.0
"""Until the next look, where nodes are starting."""
_DRAINS: Final = 5
"""Nodes with pods that go by one look; the next one waits until they are drained."""
_AGAIN_SECONDS: Final = 300.0
"""Pods that no group could help are looked at again after this time."""
_MOST_CANDIDATES: Final = 20
"""Of one look: those that could not be emptied last come last, then those that have been unneeded for longest first."""
_MOST_DESTINATIONS: Final = 40


class Happening(IntEnum):
    """The events of one moment, in their order."""

    POD_GONE = auto()
    NODE_GONE = auto()
    NODE_CAME = auto()
    NODE_READY = auto()
    POD_CAME = auto()
    GROW = auto()
    LOOK = auto()


def simulate(scene: Scene, policy: ReplayPolicy, past: Sequence[tuple[float, int, int]]) -> PolicyOutcome:
    """Return what becomes of a policy; `past` are the recorded events, by `events_of`."""
    return _Simulation(scene, policy).run(past)


def events_of(scene: Scene) -> tuple[tuple[float, int, int], ...]:
    """Return the recorded events by time: of pods, and of nodes outside of groups, each with its number."""
    recording, found = scene.recording, []
    for number, pod in enumerate(recording.pods):
        if not scene.replayed[pod.kind] or (pod.gone is not None and pod.gone <= recording.start):
            continue
        found.append((max(pod.created, recording.start), Happening.POD_CAME, number))
        if pod.gone is not None and pod.gone < recording.end:
            found.append((pod.gone, Happening.POD_GONE, number))
    for number, node in enumerate(recording.nodes):
        if scene.node_kinds[scene.kind_of_node[node.node.name]].group:
            continue
        if node.came > recording.start:
            found.append((node.came, Happening.NODE_CAME, number))
        if node.gone is not None and node.gone < recording.end:
            found.append((node.gone, Happening.NODE_GONE, number))
    return tuple(sorted((time, int(what), number) for time, what, number in found))


class _Simulation:
    def __init__(self, scene: Scene, policy: ReplayPolicy) -> None:
        self._scene = scene
        self._name = policy.name
        down = policy.settings.scale_down
        # One look stands for those of the minutes in which its nodes are drained.
        self._settings = replace(
            policy.settings,
            scale_down=replace(
                down,
                max_parallelism=down.max_parallelism * _DRAINS,
                max_drain_parallelism=down.max_drain_parallelism * _DRAINS,
            ),
        )
        recording = scene.recording
        self._fleet = NodeFleet(scene.resources, scene.node_kinds)
        self._situations = Situations(scene, self._settings, self._fleet)
        self._account = Account(recording.start, recording.end, scene.prices)
        self._memory = ClusterSizeMemory()
        self._slot_of: dict[int, int] = {}
        """By pod."""
        self._pending: dict[int, dict[int, float]] = {}
        """By kind: the pods that have no node, and since when."""
        self._coming: list[tuple[float, int, int]] = []
        self._asked: float | None = None
        """When groups are to grow next; None if nothing is asked for."""
        self._is_covered = True
        """Whether all pending pods have been decided on."""
        self._low_since: dict[int, float] = {}
        """By slot: since when its node has been requested as little as a removable one."""
        self._refused: dict[int, float] = {}
        """By slot: when it could not be emptied; others are looked at first."""
        self._outside: dict[int, int] = {}
        self._numbers = count()
        self._changed = True
        self._limits = np.array(
            [_limit(scene, kind.group, down.utilization_threshold_ratio) for kind in scene.node_kinds]
        )
        """By kind of node: the utilisation up to which such a node may go."""
        self._unneeded = [_unneeded_seconds(scene, kind.group, down.unneeded_seconds) for kind in scene.node_kinds]
        self._looked_at: list[int] = []

    def run(self, past: Sequence[tuple[float, int, int]]) -> PolicyOutcome:
        recording = self._scene.recording
        past = self._begin(past)
        heapq.heappush(self._coming, (recording.start + _SOON_SECONDS, Happening.LOOK, 0))
        at, total = 0, len(past)
        while at < total or self._coming:
            now = min(past[at][0] if at < total else math.inf, self._coming[0][0] if self._coming else math.inf)
            if now >= recording.end:
                break
            begin = at
            while at < total and past[at][0] == now:
                at += 1
            batch = list(past[begin:at])
            while self._coming and self._coming[0][0] == now:
                batch.append(heapq.heappop(self._coming))
            self._step(now, batch)
        for waiting in self._pending.values():
            for since in waiting.values():
                self._account.waited(since, recording.end)
        return self._account.outcome(self._name, sum(map(len, self._pending.values())))

    def _begin(self, past: Sequence[tuple[float, int, int]]) -> list[tuple[float, int, int]]:
        """Put the nodes and the pods of the start where they were; return the events that are left."""
        recording, scene = self._scene.recording, self._scene
        slots: dict[str, int] = {}
        for number, one in enumerate(recording.nodes):
            if not one.is_there(recording.start) or one.node.name in slots:
                continue
            slot = slots[one.node.name] = self._fleet.add(scene.kind_of_node[one.node.name], ready=True)
            self._situations.named(slot, replace(one.node, conditions={"Ready": "True"}, unschedulable=False))
            group = scene.node_kinds[scene.kind_of_node[one.node.name]].group
            self._account.node_came(slot, group, recording.start)
            if not group:
                self._outside[number] = slot
        left = []
        for event in past:
            _, what, number = event
            pod = recording.pods[number] if what == Happening.POD_CAME else None
            is_there = pod is not None and pod.bound is not None and pod.bound <= recording.start
            if pod is not None and is_there and pod.node in slots:
                self._fleet.put(number, pod.kind, scene.needs[pod.kind], slots[pod.node])
                self._slot_of[number] = slots[pod.node]
            else:
                left.append(event)
        return left

    def _step(self, now: float, batch: Iterable[tuple[float, int, int]]) -> None:
        """Let all happen that happens at one moment: what ends first, and decisions last."""
        has_room = False
        decisions = set[int]()
        came: dict[int, dict[int, float]] = {}
        for _, what, number in sorted(batch):
            if what == Happening.POD_CAME:
                came.setdefault(self._scene.recording.pods[number].kind, {})[number] = now
            elif what == Happening.POD_GONE:
                has_room |= self._pod_gone(number, now)
            elif what in {Happening.GROW, Happening.LOOK}:
                decisions.add(what)
            else:
                has_room |= self._node_changed(what, number, now)
        if has_room and self._pending:
            self._schedule(now, list(self._pending))
        if came:
            self._arrive(came, now)
        if Happening.GROW in decisions and self._asked is not None and self._asked <= now:
            self._grow(now)
        if Happening.LOOK in decisions:
            heapq.heappush(self._coming, (self._look(now), Happening.LOOK, 0))

    def _node_changed(self, what: int, number: int, now: float) -> bool:
        """Let a node be ready, come or go; return whether there is more room."""
        if what == Happening.NODE_READY:
            self._fleet.usable[number] = True
        elif what == Happening.NODE_CAME:
            self._outside_came(number)
        elif number in self._outside:
            self._evict(self._outside.pop(number), now, is_decided=False)
            return False
        return True

    def _pod_gone(self, number: int, now: float) -> bool:
        """Let a pod end; return whether a node has more room."""
        kind = self._scene.recording.pods[number].kind
        slot = self._slot_of.pop(number, None)
        if slot is None:
            since = self._pending.get(kind, {}).pop(number, None)
            if since is not None:
                self._account.waited(since, now)
                if not self._pending[kind]:
                    del self._pending[kind]
            return False
        self._fleet.take(number, self._needs(kind), slot)
        self._changed = True
        return True

    def _needs(self, kind: int) -> PodNeeds:
        return self._scene.needs[kind]

    def _arrive(self, came: dict[int, dict[int, float]], now: float) -> None:
        """Let pods come: those that find no place wait, and groups are asked to grow for them."""
        for kind, pods in came.items():
            self._pending.setdefault(kind, {}).update(pods)
        self._changed = True
        self._schedule(now, list(came))
        if any(number in self._pending.get(kind, ()) for kind, pods in came.items() for number in pods):
            self._ask(now + REACTION_SECONDS)
            self._is_covered = False

    def _ask(self, at: float) -> None:
        if self._asked is None or at < self._asked:
            self._asked = at
            heapq.heappush(self._coming, (at, Happening.GROW, 0))

    def _schedule(self, now: float, kinds: Iterable[int]) -> None:
        """Put pending pods of these kinds on nodes, as far as there is room."""
        priority = self._scene.recording.pod_kinds
        for kind in sorted(kinds, key=lambda one: -priority[one].priority):
            waiting = self._pending[kind]
            numbers = list(waiting)
            slots = self._fleet.place(numbers, kind, self._needs(kind))
            for number, slot in zip(numbers, slots, strict=False):
                self._slot_of[number] = slot
                self._account.waited(waiting.pop(number), now)
            if not waiting:
                del self._pending[kind]

    def _grow(self, now: float) -> None:
        """Decide for the pending pods, and request the nodes that they need."""
        self._asked = None
        waiting = {number: since for pods in self._pending.values() for number, since in pods.items()}
        situation = self._situations.grown(waiting, now, self._memory)
        answer = decide_size(situation, self._settings)
        for group in answer.groups:
            more = 0 if group.current is None else group.recommended - group.current
            for _ in range(max(0, more)):
                self._request(group.name, now)
            self._account.changes += more > 0
        if any(group.current is not None and group.recommended > group.current for group in answer.groups):
            self._memory = structs.replace(self._memory, last_scale_up=now)
        self._is_covered = not answer.waiting
        if answer.waits_until is not None:
            self._ask(max(now, answer.waits_until))
        elif answer.unschedulable or any(group.recommended == group.max_size for group in answer.groups):
            self._ask(now + _AGAIN_SECONDS)

    def _request(self, group: str, now: float) -> None:
        slot = self._fleet.add(self._scene.new_kinds[group], ready=False)
        self._refused.pop(slot, None)
        self._situations.named(slot, self._situations.new_node(group, f"{group}-replayed-{next(self._numbers)}", now))
        self._account.node_came(slot, group, now)
        heapq.heappush(self._coming, (now + self._scene.startup_seconds, Happening.NODE_READY, slot))

    def _outside_came(self, number: int) -> None:
        one = self._scene.recording.nodes[number]
        slot = self._outside[number] = self._fleet.add(self._scene.kind_of_node[one.node.name], ready=True)
        self._situations.named(slot, replace(one.node, conditions={"Ready": "True"}))

    def _look(self, now: float) -> float:
        """Decide which nodes go, if any could; return when to look again.

        The decision is asked only when it could let a node go: it has been requested little for long enough, and no
        cool-down holds.
        """
        fleet, down = self._fleet, self._settings.scale_down
        self._note_low(now)
        if bool((fleet.exists & ~fleet.usable).any()) or not self._is_covered:
            return now + _SOON_SECONDS
        added = self._memory.last_scale_up
        ready = -math.inf if added is None else added + down.delay_after_add_seconds
        dues = [since + self._unneeded[fleet.kind_of[slot]] for slot, since in self._low_since.items()]
        soonest = max(ready, min(dues, default=math.inf))
        candidates = self._candidates(now) if down.enabled and soonest <= now else []
        if not candidates or (not self._changed and candidates == self._looked_at):
            later = [due for due in (*dues, ready) if due > now]
            return float(min([now + _LOOK_SECONDS, *later]))
        self._changed, self._looked_at = False, candidates
        due = self._decided(candidates, now)
        drained = sum(bool(fleet.pods[slot]) for slot in due)
        self._remove(due, now)
        if due or self._has_others(now):
            return now + max(drained * DRAIN_SECONDS, _SOON_SECONDS)
        return now + _LOOK_SECONDS

    def _has_others(self, now: float) -> bool:
        """Whether nodes that could go have not been looked at lately, since one look is at a few."""
        return any(self._refused.get(slot, 0.0) < now - _LOOK_SECONDS for slot in self._candidates(now))

    def _decided(self, candidates: Sequence[int], now: float) -> list[int]:
        """Return the slots of the candidates that the decision removes."""
        slots = {self._situations.node(slot).name: slot for slot in candidates}
        since = {name: self._low_since[slot] for name, slot in slots.items()}
        memory = structs.replace(self._memory, unneeded_since=since)
        situation = self._situations.lowered(candidates, self._destinations(candidates), now, memory)
        answer = decide_size(situation, self._settings)
        self._memory = answer.memory or self._memory
        for name, slot in slots.items():
            if name not in self._memory.unneeded_since:
                self._refused[slot] = now
        return [slots[removal.node] for removal in answer.removals if removal.is_due and removal.node in slots]

    def _remove(self, due: Sequence[int], now: float) -> None:
        """Remove nodes; none of them takes the pods of another one."""
        if not due:
            return
        fleet = self._fleet
        self._account.changes += len({fleet.kinds[fleet.kind_of[slot]].group for slot in due})
        self._memory = structs.replace(self._memory, last_delete=now)
        for slot in due:
            fleet.usable[slot] = False
        for slot in due:
            self._evict(slot, now)

    def _note_low(self, now: float) -> None:
        """Note which nodes could go: a superset of those that the decision finds underutilised."""
        fleet, down = self._fleet, self._settings.scale_down
        cores, memory = fleet.shares()
        limits = self._limits[fleet.kind_of[: fleet.end]]
        is_exempt = down.ignore_daemon_sets_utilization or down.ignore_mirror_pods_utilization
        low = fleet.usable[: fleet.end] & (limits >= (0 if is_exempt else np.maximum(cores, memory)))
        self._low_since = {slot: self._low_since.get(slot, now) for slot in np.flatnonzero(low).tolist()}

    def _candidates(self, now: float) -> list[int]:
        """Return the slots of nodes that have been requested little for long enough."""
        fleet = self._fleet
        slots = [slot for slot, since in self._low_since.items() if since + self._unneeded[fleet.kind_of[slot]] <= now]
        slots.sort(key=lambda slot: (self._refused.get(slot, 0.0), self._low_since[slot], slot))
        return slots[:_MOST_CANDIDATES]

    def _destinations(self, candidates: Sequence[int]) -> list[int]:
        """Return the slots of other nodes with the most room."""
        fleet = self._fleet
        cores, memory = fleet.shares()
        shares = np.where(fleet.usable[: fleet.end], np.maximum(cores, memory), np.inf)
        shares[list(candidates)] = np.inf
        order = np.argsort(shares, kind="stable")[:_MOST_DESTINATIONS]
        return [int(slot) for slot in order if shares[slot] < 1.0]

    def _evict(self, slot: int, now: float, *, is_decided: bool = True) -> None:
        """Remove a node; its pods need another one, and count as evicted if a decision has removed it."""
        self._low_since.pop(slot, None)
        pods = self._fleet.remove(slot)
        self._account.node_went(slot, now)
        if is_decided:
            self._account.evicted(now, len(pods))
        came: dict[int, dict[int, float]] = {}
        for number, kind in pods.items():
            del self._slot_of[number]
            came.setdefault(kind, {})[number] = now
        if came:
            self._arrive(came, now)


def _limit(scene: Scene, group: str, threshold: float) -> float:
    """Return the utilisation up to which nodes of a group may go; below 0 for nodes that never do."""
    if not group:
        return -1.0
    options = next(one.options for one in scene.groups.groups if one.name == group)
    own = options.utilization_threshold_ratio
    has_gpu = any("gpu" in name for name in scene.node_kinds[scene.new_kinds[group]].offered)
    return math.inf if has_gpu else threshold if own is None else own


def _unneeded_seconds(scene: Scene, group: str, seconds: float) -> float:
    """Return for how long nodes of a group have to be unneeded."""
    own = next((one.options.unneeded_seconds for one in scene.groups.groups if one.name == group), None)
    return seconds if own is None else own
