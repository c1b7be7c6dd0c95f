"""Blocks of nodes are skipped: one without room is never searched, and one with room is never missed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from recommender.kinds.cluster_size.scale_down.block_free_resources import BLOCK, BlockRooms
from tests.recommender.kinds.cluster_size.builders import node, pod

if TYPE_CHECKING:
    from collections.abc import Sequence

LEFT = st.integers(1, 8)
NODES = st.lists(st.tuples(LEFT, LEFT), min_size=1, max_size=5 * BLOCK)
"""Nodes with their free CPU in cores and memory in GiB."""


def first_with_room(left: Sequence[tuple[int, int]], start: int, cpu: int, memory: int) -> int | None:
    """Return the first block from `start` on whose largest CPU and largest memory suffice, in a plain search."""
    blocks = [left[place : place + BLOCK] for place in range(0, len(left), BLOCK)]
    for number, block in enumerate(blocks):
        if number >= start and max(one[0] for one in block) >= cpu and max(one[1] for one in block) >= memory:
            return number
    return None


@given(sizes=NODES, filled=st.sets(st.integers(0, 5 * BLOCK - 1)), asked=st.lists(st.tuples(LEFT, LEFT), max_size=6))
def test_the_next_block_is_the_one_that_a_search_of_all_blocks_finds(
    sizes: list[tuple[int, int]], filled: set[int], asked: list[tuple[int, int]]
) -> None:
    names = [f"n{number}" for number in range(len(sizes))]
    nodes = [node(name, str(cpu), f"{memory}Gi") for name, (cpu, memory) in zip(names, sizes, strict=True)]
    snapshot = Snapshot(nodes, ())
    rooms = BlockRooms(snapshot, names)
    taken = sorted(number for number in filled if number < len(names))
    left = [(0, 0) if number in filled else size for number, size in enumerate(sizes)]
    mark = snapshot.checkpoint()
    for number in taken:
        snapshot.place(pod(names[number], str(sizes[number][0]), f"{sizes[number][1]}Gi"), names[number])
    for block in {number // BLOCK for number in taken}:
        rooms.tighten(block)

    def agrees(expected: Sequence[tuple[int, int]]) -> None:
        for start in range(-(-len(names) // BLOCK)):
            for cpu, memory in asked:
                found = rooms.next_block(start, cpu * 1000, memory << 30)
                assert found == first_with_room(expected, start, cpu, memory)

    agrees(left)
    snapshot.revert(mark)
    rooms.widen(taken)
    agrees(sizes)


def test_a_pod_without_requests_fits_on_an_overcommitted_node() -> None:
    snapshot = Snapshot([node("n", "1", "1Gi")], ())
    snapshot.place(pod("large", "2", "2Gi"), "n")
    rooms = BlockRooms(snapshot, ["n"])

    assert rooms.next_block(0, 0, 0) == 0
    assert rooms.next_block(0, 1, 0) is None
