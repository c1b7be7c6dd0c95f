"""An upper bound of the free resources on the nodes of a block, so that many blocks can be skipped at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.pod_requests import CPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot

BLOCK: Final = 64
"""How many nodes a block has."""


class BlockRooms:
    """Upper bounds of the free CPU and memory of any node of each block.

    Free resources only shrink while pods are placed, so a bound stays valid without updates. It is tightened after a
    search has examined a block in vain.

    The bounds are the leaves of a binary tree, whose other nodes have the larger bound of the two below, so that the
    next block with room is found in few steps, regardless of how many are full.
    """

    def __init__(self, snapshot: Snapshot, names: Sequence[str]) -> None:
        self._snapshot = snapshot
        self._names = names
        count = -(-len(names) // BLOCK)
        self._leaves = 1 << max(count - 1, 0).bit_length()
        self._cpu = [-1] * (2 * self._leaves)
        self._memory = [-1] * (2 * self._leaves)
        for block in range(count):
            self.tighten(block)

    def next_block(self, block: int, cpu: int, memory: int) -> int | None:
        """Return the first block from this one on with a node that may have this much left; None if there is none."""
        place = self._leaves + block
        while place:
            if cpu <= self._cpu[place] and memory <= self._memory[place]:
                if place >= self._leaves:
                    return place - self._leaves
                place *= 2
                continue
            # The next subtree to the right: that of the first ancestor, or itself, that is a left child.
            while place & 1:
                place >>= 1
            place += place > 0
        return None

    def tighten(self, block: int) -> None:
        """Make the bound of a block exact; a block without any remaining node holds nothing."""
        numbers = range(block * BLOCK, min((block + 1) * BLOCK, len(self._names)))
        left = [room for number in numbers if (room := self._free_resources(number)) is not None]
        place = self._leaves + block
        self._cpu[place] = max((cpu for cpu, _ in left), default=-1)
        self._memory[place] = max((memory for _, memory in left), default=-1)
        while place > 1:
            place >>= 1
            self._cpu[place] = max(self._cpu[2 * place], self._cpu[2 * place + 1])
            self._memory[place] = max(self._memory[2 * place], self._memory[2 * place + 1])

    def widen(self, numbers: Iterable[int]) -> None:
        """Raise bounds to the current free resources of these nodes, after placements on them were undone."""
        for number in numbers:
            left = self._free_resources(number)
            if left is None:
                continue
            cpu, memory = left
            place = self._leaves + number // BLOCK
            while place and (cpu > self._cpu[place] or memory > self._memory[place]):
                self._cpu[place] = max(self._cpu[place], cpu)
                self._memory[place] = max(self._memory[place], memory)
                place >>= 1

    def _free_resources(self, number: int) -> tuple[int, int] | None:
        """Return the CPU and memory that a node has left; None if the node was removed.

        A pod that requests nothing also fits where more is requested than the node has.
        """
        nodes, name = self._snapshot.nodes, self._names[number]
        if name not in nodes:
            return None
        info = nodes[name]
        allocatable, requested = info.allocatable, info.requested
        cpu = allocatable.get(CPU, 0) - requested.get(CPU, 0)
        return max(0, cpu), max(0, allocatable.get(MEMORY, 0) - requested.get(MEMORY, 0))


def requested_resources(shape: PodShape) -> tuple[int, int]:
    """Return the CPU and memory that a pod of the shape requests."""
    return shape.requests.get(CPU, 0), shape.requests.get(MEMORY, 0)
