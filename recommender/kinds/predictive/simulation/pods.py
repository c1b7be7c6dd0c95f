"""The pods of a simulated fleet, which hold connections until the connections end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.policy.free_slots import RESUME_RATIO

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray, IntArray

_NONE_LEFT = 1e-9


class StickyPods:
    """The pods of one simulated fleet, oldest first. The object changes from step to step."""

    def __init__(self, replicas: int, limit: float) -> None:
        """Begin with this many pods, which have started and are empty."""
        self.limit = limit
        self.connections: FloatArray = np.zeros(replicas)
        self.starts_at: IntArray = np.zeros(replicas, dtype=np.int64)
        """The step from which each pod takes connections."""
        self._is_full: BoolArray = np.zeros(replicas, dtype=np.bool_)
        self.numbers: IntArray = np.arange(replicas)
        """The numbers of the pods, which no other pod gets."""
        self._next_number = replicas

    @property
    def count(self) -> int:
        """Return how many pods there are, including starting ones."""
        return len(self.connections)

    def lose(self, ratio: float) -> None:
        """End this share of all connections. Pods that have room again become ready."""
        self.connections *= 1 - ratio
        if self._is_full.any():
            self._is_full &= self.connections >= RESUME_RATIO * self.limit

    def resize(self, replicas: int, step: int, lag_steps: int) -> float:
        """Add or drop pods, and return how many connections the dropped ones held.

        As with a ReplicaSet's defaults, pods that have not started are dropped first, then those that are not ready,
        which are the full ones, then the newest. Source: the ranking of pods in kube-controller-manager
        (ActivePodsWithRanks).
        """
        added = replicas - self.count
        if added == 0:
            return 0.0
        if added > 0:
            self.connections = np.concatenate([self.connections, np.zeros(added)])
            self.starts_at = np.concatenate([self.starts_at, np.full(added, step + lag_steps)])
            self._is_full = np.concatenate([self._is_full, np.zeros(added, dtype=np.bool_)])
            self.numbers = np.concatenate([self.numbers, np.arange(self._next_number, self._next_number + added)])
            self._next_number += added
            return 0.0
        kept_longest = np.lexsort((self.numbers, self._is_full, self.starts_at > step))
        # lexsort puts False before True and small numbers first: the end of the order is dropped.
        kept = np.sort(kept_longest[:replicas])
        before = float(self.connections.sum())
        self.connections, self.starts_at = self.connections[kept], self.starts_at[kept]
        self._is_full, self.numbers = self._is_full[kept], self.numbers[kept]
        return before - float(self.connections.sum())

    def place(self, offered: float, ready: BoolArray) -> float:
        """Spread new connections evenly over the ready pods up to their limit, and return those that find no room."""
        places = np.flatnonzero(ready)
        if not len(places) or offered <= 0:
            return max(0.0, offered)
        held = self.connections[places] + offered / len(places)
        left = 0.0
        if held.max() >= self.limit:
            held, left = self._fill_pods(held)
        self.connections[places] = held
        if left or held.max() >= self.limit:
            self._is_full |= self.connections >= self.limit
        return left

    def _fill_pods(self, held: FloatArray) -> tuple[FloatArray, float]:
        """Return each pod's connections after pods above the limit passed on their excess, and the remaining excess."""
        while True:
            left = float(np.maximum(held - self.limit, 0.0).sum())
            held = np.minimum(held, self.limit)
            room = np.flatnonzero(held < self.limit)
            if left <= _NONE_LEFT * self.limit:
                return held, 0.0
            if not len(room):
                return held, left
            held[room] += left / len(room)

    def ready(self, step: int) -> BoolArray:
        """Return which pods accept new connections: they have started and are not full."""
        return (self.starts_at <= step) & ~self._is_full
