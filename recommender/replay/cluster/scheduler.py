"""Schedules the pods of a replay by kube-scheduler's rules: which node each pod has, and which pods wait for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from recommender.replay.cluster.fleet import NodeFleet
    from recommender.replay.cluster.replay_facts import Scene
    from recommender.replay.policy_outcome import Account


class Scheduler:
    """Puts pods on nodes as soon as there is room, so a pod waits only while it fits on no usable node."""

    def __init__(self, scene: Scene, fleet: NodeFleet, account: Account) -> None:
        self._needs = scene.needs
        self._pods = scene.recording.pods
        self._urgency = tuple(-kind.priority for kind in scene.recording.pod_kinds)
        """Order of placement by kind of pod; the kind with the smallest number is placed first."""
        self._fleet = fleet
        self._account = account
        self._slot_of: dict[int, int] = {}
        """The slot of each pod."""
        self._pending: dict[int, dict[int, float]] = {}
        """The pods of each kind that have no node, and since when each has had none."""
        self.alive = [0] * len(scene.recording.pod_kinds)
        """The number of pods of each kind, including waiting ones."""
        self.has_changed = True
        """Whether pods have arrived or ended; a reader clears it."""

    def pending_by_kind(self) -> Mapping[int, Mapping[int, float]]:
        """Return a live view of the pods of each kind that have no node, and since when each has had none."""
        return self._pending

    def pending(self) -> dict[int, float]:
        """Return the pods that have no node, and since when each has had none."""
        return {number: since for pods in self._pending.values() for number, since in pods.items()}

    def bind(self, number: int, slot: int) -> None:
        """Put a pod on the node that it had when the recording began."""
        kind = self._pods[number].kind
        self._fleet.put(number, kind, self._needs[kind], slot)
        self._slot_of[number] = slot
        self.alive[kind] += 1

    def arrive(self, came: Mapping[int, Mapping[int, float]], now: float) -> bool:
        """Add arriving pods, given by kind with their times; return whether some of them find no node."""
        for kind, pods in came.items():
            self.alive[kind] += len(pods)
        return self._wait(came, now)

    def _wait(self, came: Mapping[int, Mapping[int, float]], now: float) -> bool:
        """Add pods that need a node; return whether some of them find none."""
        for kind, pods in came.items():
            self._pending.setdefault(kind, {}).update(pods)
        self.has_changed = True
        self._schedule(now, came)
        # Of equal pods, those that have waited for longest are placed first: the others still wait if one of them does.
        return any(kind in self._pending for kind in came)

    def end(self, number: int, now: float) -> int | None:
        """End a pod; return the slot that now has more room, if any."""
        kind = self._pods[number].kind
        slot = self._slot_of.pop(number, None)
        if slot is None:
            since = self._pending.get(kind, {}).pop(number, None)
            if since is not None:
                self.alive[kind] -= 1
                self._account.record_wait(since, now)
                if not self._pending[kind]:
                    del self._pending[kind]
            return None
        self.alive[kind] -= 1
        self._fleet.take(number, self._needs[kind], slot)
        self.has_changed = True
        return slot

    def fill(self, slots: Collection[int], now: float) -> None:
        """Put waiting pods on the nodes that have more room than before; no other node can take any of them."""
        if self._pending:
            self._schedule(now, self._pending, slots)

    def lose(self, pods: Mapping[int, int], now: float) -> bool:
        """Move the pods of a lost node, given as kinds by number; return whether some of them find no other node."""
        came: dict[int, dict[int, float]] = {}
        for number, kind in pods.items():
            del self._slot_of[number]
            came.setdefault(kind, {})[number] = now
        return bool(came) and self._wait(came, now)

    def _schedule(self, now: float, kinds: Iterable[int], slots: Collection[int] | None = None) -> None:
        """Put pending pods of these kinds on nodes as far as there is room; only `slots`, if given, may have room."""
        fleet = self._fleet
        for kind in sorted(kinds, key=self._urgency.__getitem__):
            needs = self._needs[kind]
            if slots is not None and not any(fleet.takes(slot, needs) for slot in slots):
                continue
            waiting = self._pending[kind]
            numbers = list(waiting)
            for number, slot in zip(numbers, fleet.place(numbers, kind, needs), strict=False):
                self._slot_of[number] = slot
                self._account.record_wait(waiting.pop(number), now)
            if not waiting:
                del self._pending[kind]
