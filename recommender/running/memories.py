"""The memories of all recommendations: loaded when this process begins to lead, stored when they change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.memory import Memory

if TYPE_CHECKING:
    from recommender.running.memory_store import MemoryStore


class Memories:
    """The loop's own methods are for one thread; `store_now` may be called from any."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._memories: dict[str, Memory] = {}

    def load(self, name: str) -> Memory:
        """Return the memory of a recommendation; it is read again if somebody else has changed what is stored.

        Raises MemoryUnavailableError.
        """
        if name not in self._memories or self._store.needs_load(name):
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
        return memory is not None and self._store.save(name, memory, urgent=True)

    def forget(self) -> None:
        """Forget everything: another process leads and will change what is stored."""
        self._memories = {}


def _without_times(memory: Memory) -> tuple[object, ...]:
    """Return what is worth a write: every poll confirms the value, and a write for each would load the API server."""
    replicas = None if memory.last is None else memory.last.replicas
    return replicas, memory.changes, memory.parameters, memory.rungs
