"""The memories of all recommendations: loaded when this process begins to lead, stored when they change."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from recommender.decisions.memory import Memory
from recommender.running.memory.store import MemoryUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recommender.running.memory.store import MemoryStore


class Memories:
    """The loop's own methods are for one thread; `store_now` may be called from any."""

    def __init__(self, store: MemoryStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._memories: dict[str, Memory] = {}
        self._tried_at: dict[str, float] = {}
        """When each memory was last read, or when that was last tried."""
        self._read_until = math.inf

    def begin(self, names: Sequence[str], seconds: float) -> tuple[str, ...]:
        """Begin a poll in which reading takes so many seconds, and at most one read more.

        Returns the names in the order in which they are to be loaded: what hangs must not take the time of the others
        in every poll, so what has waited longest comes first.
        """
        self._read_until = self._clock() + seconds
        return tuple(sorted(names, key=lambda name: self._tried_at.get(name, -math.inf)))

    def load(self, name: str) -> Memory:
        """Return the memory of a recommendation; it is read again if somebody else has changed what is stored.

        Raises MemoryUnavailableError.
        """
        if name not in self._memories or self._store.needs_load(name):
            now = self._clock()
            if now >= self._read_until:
                raise MemoryUnavailableError("its memory has not been read yet: reading memories takes too long")
            self._tried_at[name] = now
            self._memories[name] = self._store.load(name) or Memory()
        return self._memories[name]

    def remember(self, name: str, memory: Memory) -> None:
        """Replace the memory of a recommendation that has been loaded; it is stored if that is worth a write."""
        before = self._memories.get(name)
        if before is None:
            return
        self._memories[name] = memory
        if _without_times(memory) != _without_times(before):
            self._store.save(name, memory, urgent=False)

    def store_now(self, name: str) -> bool:
        """Store the memory of a recommendation at once; returns whether it is stored.

        To be called before a scale call, which starts what the memory counts.
        """
        memory = self._memories.get(name)
        if memory is None:
            return False
        is_stored = self._store.save(name, memory, urgent=True)
        newest = self._memories.get(name)
        if newest is not None and newest is not memory:
            # The loop has decided again meanwhile, and the older memory must not replace the newer one.
            self._store.save(name, newest, urgent=False)
        return is_stored

    def forget(self) -> None:
        """Forget everything: another process leads and will change what is stored."""
        self._memories = {}


def _without_times(memory: Memory) -> tuple[object, ...]:
    """Return what is worth a write: every poll confirms the value, and a write for each would load the API server."""
    replicas = None if memory.last is None else memory.last.replicas
    of_targets = {target: _without_times(each) for target, each in memory.by_target.items()}
    return replicas, memory.changes, memory.parameters, memory.rungs, memory.policy, of_targets
