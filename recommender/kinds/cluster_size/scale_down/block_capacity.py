"""An upper bound of what is left on the nodes of a block, so that whole blocks can be passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.pod_requests import CPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recommender.kinds.cluster_size.predicates.shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot

BLOCK: Final = 64
"""Nodes of a block."""


class BlockCapacity:
    """The most CPU and the most memory that a node of each block has left, or more than that.

    What is left only shrinks while pods are placed, so a bound stays one without being kept up to date. It is tightened
    where a search has looked at a block in vain.
    """

    def __init__(self, snapshot: Snapshot, names: Sequence[str]) -> None:
        self._snapshot = snapshot
        self._names = names
        count = -(-len(names) // BLOCK)
        self._cpu = [0] * count
        self._memory = [0] * count
        for block in range(count):
            self.tighten(block)

    def may_hold(self, block: int, cpu: int, memory: int) -> bool:
        """Whether a node of the block might have as much left; if not, none has."""
        return cpu <= self._cpu[block] and memory <= self._memory[block]

    def tighten(self, block: int) -> None:
        """Make the bound of a block exact; a block whose nodes are all gone holds nothing."""
        self._cpu[block] = self._memory[block] = -1
        self.widen(range(block * BLOCK, min((block + 1) * BLOCK, len(self._names))))

    def widen(self, numbers: Iterable[int]) -> None:
        """Raise bounds to what these nodes have left now, after pods on them have been undone."""
        nodes = self._snapshot.nodes
        for number in numbers:
            info = nodes.get(self._names[number])
            if info is None:
                continue
            block = number // BLOCK
            cpu = info.allocatable.get(CPU, 0) - info.requested.get(CPU, 0)
            memory = info.allocatable.get(MEMORY, 0) - info.requested.get(MEMORY, 0)
            self._cpu[block] = max(self._cpu[block], cpu)
            self._memory[block] = max(self._memory[block], memory)


def asked(shape: PodShape) -> tuple[int, int]:
    """Return the CPU and memory that a pod of the shape asks for."""
    return shape.requests.get(CPU, 0), shape.requests.get(MEMORY, 0)
