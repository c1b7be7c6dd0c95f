"""A queue of keys by the time at which they are due."""

from __future__ import annotations

import heapq
import itertools
import math
from typing import Generic, TypeVar

K = TypeVar("K")


class DueQueue(Generic[K]):
    """Due times by key, earliest first. Not thread-safe: the owner must lock it."""

    def __init__(self) -> None:
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._order = itertools.count()

    def set(self, key: K, due: float) -> None:
        """Set the time at which the key is due."""
        self._due[key] = due
        heapq.heappush(self._heap, (due, next(self._order), key))

    def hasten(self, key: K, due: float) -> None:
        """Bring a scheduled key's due time forward to `due` if it is later; do nothing for other keys."""
        if due < self._due.get(key, -math.inf):
            self.set(key, due)

    def discard(self, key: K) -> None:
        """Forget the key."""
        self._due.pop(key, None)

    def first(self) -> K | None:
        """Return the key that is due first; None if nothing is scheduled."""
        return None if self.next_due() is None else self._heap[0][2]

    def pop_due(self, now: float, limit: int) -> list[K]:
        """Remove and return up to `limit` keys that are due, the earliest first."""
        ready: list[K] = []
        while len(ready) < limit and (due := self.next_due()) is not None and due <= now:
            key = heapq.heappop(self._heap)[2]
            del self._due[key]
            ready.append(key)
        return ready

    def next_due(self) -> float | None:
        """Return the earliest due time; None if nothing is scheduled."""
        while self._heap:
            due, _, key = self._heap[0]
            if self._due.get(key) == due:
                return due
            heapq.heappop(self._heap)
        return None

    def __len__(self) -> int:
        return len(self._due)
