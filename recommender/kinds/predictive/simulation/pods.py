"""The pods of a simulated fleet, which hold connections until the connections end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recommender.decisions.loads.load_inputs import PodConnections
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
        self._starts_at: IntArray = np.zeros(replicas, dtype=np.int64)
        self._is_full: BoolArray = np.zeros(replicas, dtype=np.bool_)
        self._numbers: IntArray = np.arange(replicas)
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
            self._starts_at = np.concatenate([self._starts_at, np.full(added, step + lag_steps)])
            self._is_full = np.concatenate([self._is_full, np.zeros(added, dtype=np.bool_)])
            self._numbers = np.concatenate([self._numbers, np.arange(self._next_number, self._next_number + added)])
            self._next_number += added
            return 0.0
        kept_longest = np.lexsort((self._numbers, self._is_full, self._starts_at > step))
        # lexsort puts False before True and small numbers first: the end of the order is dropped.
        kept = np.sort(kept_longest[:replicas])
        before = float(self.connections.sum())
        self.connections, self._starts_at = self.connections[kept], self._starts_at[kept]
        self._is_full, self._numbers = self._is_full[kept], self._numbers[kept]
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
        return (self._starts_at <= step) & ~self._is_full

    def observe(self, step: int, step_seconds: float, lag_steps: int) -> tuple[PodConnections, ...]:
        """Return the pods as the policy sees them. A pod that has not started yet has no sample."""
        pods = zip(
            self.connections.tolist(),
            self.ready(step).tolist(),
            self._starts_at.tolist(),
            self._numbers.tolist(),
            strict=True,
        )
        return tuple(
            PodConnections(connections, is_ready=is_ready, name=str(number))
            if starts_at <= step
            else PodConnections(
                None, is_ready=False, name=str(number), unready_seconds=(step - starts_at + lag_steps) * step_seconds
            )
            for connections, is_ready, starts_at, number in pods
        )
