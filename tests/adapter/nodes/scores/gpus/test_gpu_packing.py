"""gpu-packing: a perfect fit comes first, then the least left over; the scheduler's integers keep that order."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodes.model.scheduling_settings import GpuPackingArgs
from adapter.nodes.scores.blend import blend
from adapter.nodes.scores.gpus import gpu_packing
from tests.adapter.nodes.scores.builder import Node, columns, pod, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

CPU = {"cpu": 16_000.0, "memory": 64.0 * 2**30}


def free(count: int, size: int = 8, cpu: float = 0.0) -> Node:
    """Return a node of which so many GPUs are free and so much CPU is requested."""
    return Node(capacity=CPU, requested={"cpu": cpu}, gpu_left=(0,) * (size - count) + (1000,) * count)


def priorities(nodes: Sequence[Node], count: int, milli: int = 1000) -> list[int]:
    """Return the priorities that the scheduler reads."""
    wanted = pod({"cpu": 1000, "memory": 2**30}, gpu_count=count, gpu_milli=milli)
    scores = gpu_packing.score(wanted, columns(*nodes), rows(len(nodes)), GpuPackingArgs())
    assert all(scores.reason(position) for position in range(len(nodes)))
    found: list[int] = blend([(1, scores.values)], len(nodes)).priorities.tolist()
    return found


def test_the_reason_tells_how_many_gpus_stay_free() -> None:
    table = columns(free(3, 4), free(1, 4))
    scores = gpu_packing.score(pod(gpu_count=2, gpu_milli=1000), table, rows(2), GpuPackingArgs())
    assert scores.reason(0) == "3 of 4 GPUs are free, the pod would take 2 of these and leave 1 free"
    assert scores.reason(1) == "the node has no room for 2 GPUs with 1000 of 1000"


@pytest.mark.parametrize(
    ("nodes", "count", "expected"),
    [
        # One GPU: the node with exactly one, not the one with four.
        ([free(4), free(1)], 1, [5, 10]),
        ([free(1, 1), free(2, 2), free(4, 4), free(8)], 1, [10, 6, 4, 2]),
        ([free(8), free(7), free(6), free(5), free(4), free(3), free(2), free(1)], 1, [1, 2, 3, 4, 5, 6, 7, 10]),
        # Whole GPUs come first, however full the CPU is.
        ([free(2, cpu=15_000), free(1)], 1, [5, 10]),
        # Equal in GPUs: the node with less CPU left.
        ([free(2), free(2, cpu=8_000), free(2, cpu=4_000)], 2, [1, 10, 9]),
        ([free(4, cpu=1_000), free(2), free(2, cpu=8_000), free(4)], 2, [5, 9, 10, 4]),
        # A node without enough gets 0, and one whose state is the same gets the same.
        ([free(1), free(2), free(3), free(3)], 2, [0, 10, 5, 5]),
        ([free(0), Node(capacity=CPU)], 1, [0, 0]),
        ([free(3), free(3)], 1, [10, 10]),
        # Sixteen levels: the best differs from all others, and the last seven share 1.
        (
            [free(count, 16) for count in range(1, 17)],
            1,
            [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1, 1, 1, 1, 1, 1],
        ),
    ],
)
def test_the_node_with_the_least_left_over_comes_first(nodes: list[Node], count: int, expected: list[int]) -> None:
    assert priorities(nodes, count) == expected


@pytest.mark.parametrize(
    ("left", "count", "milli", "expected"),
    [
        # A share fits into a GPU that is in use: no free one is opened, and the least is left of it.
        (((1000, 0), (300, 1000), (250, 1000), (700, 700)), 1, 250, [2, 6, 10, 4]),
        # Shares of two GPUs: one in use and a free one before two free ones.
        (((1000, 1000), (500, 1000), (600, 1000)), 2, 500, [3, 10, 6]),
    ],
)
def test_shares_go_to_gpus_that_are_in_use(
    left: tuple[tuple[int, ...], ...], count: int, milli: int, expected: list[int]
) -> None:
    assert priorities([Node(capacity=CPU, gpu_left=each) for each in left], count, milli) == expected


@given(
    st.lists(st.tuples(st.integers(0, 16), st.integers(0, 15_000)), min_size=1, max_size=40),
    st.integers(1, 16),
)
def test_the_fewest_free_gpus_that_are_enough_are_strictly_best(nodes: list[tuple[int, int]], count: int) -> None:
    found = priorities([free(gpus, 16, cpu) for gpus, cpu in nodes], count)
    enough = [gpus for gpus, _ in nodes if gpus >= count]
    for (gpus, _), priority in zip(nodes, found, strict=True):
        assert (priority > 0) is (gpus >= count)
        assert 0 <= priority <= 10
    if not enough:
        return
    levels = sorted(set(enough))
    by_level = {level: [p for (gpus, _), p in zip(nodes, found, strict=True) if gpus == level] for level in levels}
    assert max(found) == 10
    for rank, (level, after) in enumerate(itertools.pairwise(levels)):
        # Ten integers distinguish the first nine levels from what comes after them.
        if rank < 9:
            assert min(by_level[level]) > max(by_level[after])
        else:
            assert by_level[level] == [1] * len(by_level[level])
    if len(levels) <= 9:
        # There is an integer to spare, which goes to the best nodes: those of which the most CPU is used.
        best = max(cpu for gpus, cpu in nodes if gpus == levels[0])
        assert [one for one, priority in zip(nodes, found, strict=True) if priority == 10] == [
            (gpus, cpu) for gpus, cpu in nodes if gpus == levels[0] and cpu == best
        ]


def test_a_node_in_use_comes_before_an_empty_one_as_in_the_simulator() -> None:
    """The simulator gives 48 and 25 points (hkust-adsl/kubernetes-scheduler-simulator, `gpu_packing_score_test.go`)."""
    used, empty = Node(capacity=CPU, gpu_left=(200, 1000, 1000, 500)), Node(capacity=CPU, gpu_left=(1000,) * 8)
    first, second = priorities([used, empty], 2)
    assert first > second


def test_parts_of_gpus_that_are_in_use_come_before_whole_ones_as_in_the_simulator() -> None:
    """The simulator gives 93 where two parts are free (hkust-adsl/kubernetes-scheduler-simulator, in the same file)."""
    used, empty = Node(capacity=CPU, gpu_left=(200, 1000, 1000, 500)), Node(capacity=CPU, gpu_left=(1000,) * 8)
    first, second = priorities([used, empty], 2, 200)
    assert first > second
