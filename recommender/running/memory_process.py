"""Memories that end with the process, for a process that may write nothing but scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.decisions.memory import Memory


class ProcessMemoryStore:
    """A `MemoryStore` that stores nothing anywhere, as with cluster-proportional-autoscaler's rights."""

    def __init__(self) -> None:
        self._memories: dict[str, Memory] = {}

    def load(self, name: str) -> Memory | None:
        """Return what this process has saved."""
        return self._memories.get(name)

    def save(self, name: str, memory: Memory, *, urgent: bool) -> bool:  # noqa: ARG002 - nothing is faster
        """Keep the memory; returns True."""
        self._memories[name] = memory
        return True

    def needs_load(self, name: str) -> bool:  # noqa: ARG002 - nobody else writes
        """Return False."""
        return False
