"""The published fragments of a node, and the scores that `gpu-fragmentation` gives for them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodes.model.scheduling_settings import GpuFragmentationArgs
from adapter.nodes.model.workload import GpuPodKind
from adapter.nodes.scores.blend import blend
from adapter.nodes.scores.gpus import gpu_fragmentation
from adapter.nodes.scores.gpus.gpu_fragmentation import left_over
from adapter.nodes.scores.gpus.gpu_fragments import (
    MOST_KINDS,
    FragmentTable,
    as_array,
    gradient_points,
    mix_of,
    placements,
)
from adapter.nodes.scores.gpus.gpu_value import value_by_free_milli
from tests.adapter.nodes.scores.builder import Node, columns, listed, pod, rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.nodes.model.columns import PendingPod

ONE, TWO = GpuPodKind(1000, 1, 1000), GpuPodKind(1000, 2, 1000)
HALF_AND_HALF = {ONE: 1.0, TWO: 1.0}
SHAPES = st.builds(GpuPodKind, st.integers(0, 8000), st.integers(0, 8), st.integers(1, 1000))
STATES = st.lists(st.integers(0, 1000), max_size=8).map(lambda left: tuple(sorted(left)))


def fragments(left: Sequence[int], cpu_milli: int, seen: Mapping[GpuPodKind, float]) -> float:
    table = FragmentTable(as_array([tuple(sorted(left))]), mix_of(seen))
    return float(table.fragments_milli(np.array([0]), np.array([cpu_milli]))[0])


def wanted(gpus: int, milli: int = 1000, cpu: int = 1000) -> PendingPod:
    return pod(
        {"cpu": cpu, "nvidia.com/gpu": gpus} if gpus else {"cpu": cpu}, gpu_count=gpus, gpu_milli=milli * bool(gpus)
    )


def scores(pending: PendingPod, nodes: Sequence[Node], seen: Mapping[GpuPodKind, float]) -> list[float | None]:
    table = replace(columns(*nodes), gpu_workload=seen)
    return listed(gpu_fragmentation.score(pending, table, rows(len(nodes)), GpuFragmentationArgs()))


def node(*left: int, cpu: float = 8000.0) -> Node:
    return Node(capacity={"cpu": cpu}, gpu_left=left)


@pytest.mark.parametrize(
    ("left", "cpu", "seen", "expected"),
    [
        # The published cases: nothing is lost to a pod that can use all that is left.
        ([1000] * 8, 0, {GpuPodKind(0, 2, 1000): 1.0}, 0),
        ([200, 1000, 1000, 500], 0, {GpuPodKind(0, 2, 200): 1.0}, 0),
        # GPUs of which less is left than the pod needs; too few GPUs; too little CPU; a pod without GPUs.
        ([200, 1000, 1000, 500], 0, {GpuPodKind(0, 2, 600): 1.0}, 700),
        ([200, 1000, 500], 0, {GpuPodKind(0, 2, 600): 1.0}, 1700),
        ([1000, 1000], 999, {ONE: 1.0}, 2000),
        ([1000, 1000], 9000, {GpuPodKind(1000, 0, 0): 1.0}, 2000),
        ([1000, 1000], 1000, HALF_AND_HALF, 0),
        ([0, 1000], 1000, HALF_AND_HALF, 500),
        ([0, 1000], 1000, {ONE: 3.0, TWO: 1.0}, 250),
        # Nothing is known of the workload.
        ([300, 1000], 1000, {}, 1300),
    ],
)
def test_fragments_are_the_part_that_expected_pods_cannot_use(
    left: list[int], cpu: int, seen: dict[GpuPodKind, float], expected: float
) -> None:
    assert fragments(left, cpu, seen) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("before", "after", "expected"), [((0, 1000), (0, 0), 62), ((1000, 1000), (0, 1000), 37), ((1000,), (1000,), 50)]
)
def test_the_gradient_has_the_published_points(before: tuple[int, ...], after: tuple[int, ...], expected: int) -> None:
    milli = [np.array([fragments(left, 8000, HALF_AND_HALF)]) for left in (before, after)]
    assert gradient_points(*milli).tolist() == [expected]


def test_a_pod_with_one_gpu_leaves_pairs_of_free_gpus_for_others() -> None:
    apart, together, full = scores(wanted(1), [node(0, 1000), node(1000, 1000), node(0, 0)], HALF_AND_HALF)
    assert apart == 100
    assert together is not None
    assert 0 < together < 60
    assert full == 0


def test_the_workload_seen_decides_which_node_is_best() -> None:
    """Where no pod wants two GPUs, the CPU decides; where every pod does, single GPUs are filled at any cost."""
    nodes = [node(0, 1000, cpu=16_000), node(1000, 1000, cpu=1000)]
    for seen, best in (({TWO: 1.0}, 0), ({GpuPodKind(2000, 1, 1000): 1.0}, 1)):
        found = scores(wanted(1), nodes, seen)
        assert found.index(100) == best, seen


def test_placements_that_add_no_fragments_are_equal_so_the_fullest_node_is_first() -> None:
    """Every pod still fits everywhere afterwards: no rounding of sums may tell these nodes apart."""
    seen = {ONE: 8.0, TWO: 7.0, GpuPodKind(2000, 1, 1000): 4.0}
    nodes = [node(*[0] * (8 - free), *[1000] * free) for free in range(3, 9)]
    found = scores(wanted(1), nodes, seen)
    assert found == sorted(found, key=lambda score: -(score or 0.0)), found


def test_a_gpu_share_does_not_leave_a_part_that_no_pod_fits() -> None:
    """Two shares of 470 fill a GPU, and so do three of 320; one of each leaves 210, into which no pod fits."""
    seen = {GpuPodKind(0, 1, 470): 1.0, GpuPodKind(0, 1, 320): 1.0}
    beside_470, beside_two_320 = node(530), node(360)
    assert scores(wanted(1, 320), [beside_470, beside_two_320], seen)[1] == 100


@pytest.mark.parametrize(
    ("demand", "expected"),
    [
        ({1000: 1}, {1000: 1.0, 990: 0.0}),
        ({500: 1}, {500: 0.5, 490: 0.0, 1000: 1.0}),
        ({470: 1, 320: 1}, {470: 0.5, 320: 1 / 3, 460: 1 / 3, 210: 0.0, 1000: 1.0}),
        # One of 650 needs one of 320 beside it, of which there are enough.
        ({650: 1, 320: 4}, {650: 2 / 3, 320: 1 / 3, 1000: 1.0}),
        ({}, {1000: 0.0}),
    ],
)
def test_the_value_of_a_free_part_is_what_still_fits_into_it(
    demand: dict[int, int], expected: dict[int, float]
) -> None:
    worth = value_by_free_milli(mix_of({GpuPodKind(0, 1, milli): float(count) for milli, count in demand.items()}))
    assert {left: worth[left // 10] for left in expected} == pytest.approx(expected, abs=1e-5)


@given(st.dictionaries(SHAPES, st.floats(0.01, 1000.0), max_size=20))
def test_the_value_of_a_free_part_grows_with_its_size_up_to_one_gpu(seen: dict[GpuPodKind, float]) -> None:
    worth = value_by_free_milli(mix_of(seen))
    assert np.isfinite(worth).all()
    assert (np.diff(worth) >= 0).all()
    assert worth[0] == 0
    assert worth[-1] == pytest.approx(1.0 if any(shape.gpu_count for shape in seen) else 0.0, abs=1e-4)


@given(STATES, st.integers(0, 9000), st.dictionaries(SHAPES, st.floats(0.01, 1000.0), max_size=20))
def test_fragments_are_between_zero_and_the_whole_free_part(
    left: tuple[int, ...], cpu: int, seen: dict[GpuPodKind, float]
) -> None:
    found = fragments(left, cpu, seen)
    assert -1e-6 <= found <= sum(left) + 1e-6
    assert fragments(left, cpu + 1000, seen) <= found + 1e-6


@given(STATES, st.integers(0, 8), st.integers(1, 1000))
def test_a_placement_takes_the_request_from_gpus_with_enough_left(
    state: tuple[int, ...], count: int, milli: int
) -> None:
    found = placements(state, count, milli)
    assert bool(found) is (sum(left >= milli for left in state) >= count)
    assert len(set(found)) == len(found)
    for after in found:
        assert sum(after) == sum(state) - count * milli
        assert min(after, default=0) >= 0
        assert list(after) == sorted(after)


@pytest.mark.parametrize(
    ("count", "milli", "expected"),
    [
        # One GPU may be any that has enough left; those with equal remainders are one choice.
        (1, 300, [(0, 500, 500, 1000), (200, 300, 500, 1000), (300, 500, 500, 700)]),
        (1, 400, [(100, 300, 500, 1000), (300, 500, 500, 600)]),
        # Several GPUs are those with the least left that is enough.
        (2, 200, [(100, 300, 500, 1000)]),
        (4, 400, []),
        (0, 0, [(300, 500, 500, 1000)]),
    ],
)
def test_the_placements_of_a_pod_on_a_node(count: int, milli: int, expected: list[tuple[int, ...]]) -> None:
    assert sorted(placements((300, 500, 500, 1000), count, milli)) == expected


def test_a_share_may_take_a_gpu_other_than_the_fullest() -> None:
    """Of 470, a share of 320 leaves a part that no pod fits; of 640, it leaves one for another share of 320."""
    seen = {GpuPodKind(0, 1, 470): 1.0, GpuPodKind(0, 1, 320): 1.0}
    one, both = scores(wanted(1, 320), [node(470), node(470, 640)], seen)
    assert both == 100
    assert one is not None
    assert one < 60


def test_the_reason_tells_the_fragments_before_and_with_the_pod() -> None:
    table = replace(columns(node(500, 1000), node(400)), gpu_workload={ONE: 1.0})
    found = gpu_fragmentation.score(wanted(1, 450), table, rows(2), GpuFragmentationArgs())
    assert [found.reason(position) for position in range(2)] == [
        "fragments of GPUs that the cluster's pods cannot use: 0.50 before, 0.05 with the pod",
        "the node has no room for 1 GPU with 450 of 1000",
    ]


def test_a_mix_is_bounded_and_does_not_depend_on_the_order_of_pods() -> None:
    seen = {GpuPodKind(cpu, 1, 1000): 1.0 + (cpu % 7) for cpu in range(10 * MOST_KINDS)}
    one, other = mix_of(seen), mix_of(dict(reversed(seen.items())))
    assert len(one.share) == MOST_KINDS
    assert one.share.sum() == pytest.approx(1.0)
    assert one.cpu_milli.tolist() == other.cpu_milli.tolist()


def test_typical_pods_are_the_most_frequent_ones_up_to_the_coverage() -> None:
    mix = mix_of({GpuPodKind(1, 1, 1000): 60.0, GpuPodKind(2, 1, 1000): 36.0, GpuPodKind(3, 1, 1000): 4.0}, 0.95)
    assert mix.share.tolist() == pytest.approx([0.625, 0.375])


NODES = st.lists(
    st.builds(lambda left, cpu: node(*left, cpu=float(cpu)), STATES, st.integers(0, 16_000)), min_size=1, max_size=12
)


@given(
    NODES,
    st.integers(0, 4),
    st.integers(1, 1000),
    st.dictionaries(SHAPES, st.floats(0.01, 100.0), max_size=8),
    st.randoms(),
)
def test_scores_do_not_depend_on_node_order_and_nodes_without_enough_gpus_get_zero(
    nodes: list[Node], gpus: int, milli: int, seen: dict[GpuPodKind, float], random: object
) -> None:
    pending = wanted(gpus, milli)
    found = scores(pending, nodes, seen)
    for each, value in zip(nodes, found, strict=True):
        assert value is not None
        assert (value > 0) is (sum(left >= milli for left in each.gpu_left) >= gpus)
    order = list(range(len(nodes)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert scores(pending, [nodes[index] for index in order], seen) == [found[index] for index in order]
    if any(found):
        assert blend([(1, np.array(found, dtype=np.float64))], len(nodes)).priorities.max() == 10


def test_a_pod_without_gpus_avoids_nodes_whose_gpus_need_the_cpu() -> None:
    with_gpus, without = scores(wanted(0, cpu=4000), [node(1000, cpu=4500), node(cpu=16_000)], {ONE: 1.0})
    assert without == 100
    assert with_gpus is not None
    assert with_gpus < 60


@pytest.mark.parametrize("device", ["nvidia.com/gpu.shared", "gpu.intel.com/i915", "nvidia.com/mig-1g.5gb"])
def test_an_unknown_device_scores_the_same_on_all_nodes_and_the_reason_names_it(device: str) -> None:
    shared = pod({"cpu": 1000, device: 1})
    table = columns(node(1000), node(cpu=1000.0))
    found = gpu_fragmentation.score(shared, table, rows(2), GpuFragmentationArgs())
    assert found.values.tolist() == [50, 50]
    assert device in found.reason(0)


def test_a_pod_that_requests_0_gpus_counts_as_one_without_gpus() -> None:
    """Charts often write `nvidia.com/gpu: 0` where no GPU is wanted."""
    nodes = [node(1000, cpu=4500), node(cpu=16_000)]
    none = {"cpu": 4000, "nvidia.com/gpu": 0}
    assert scores(pod(none), nodes, {ONE: 1.0}) == scores(wanted(0, cpu=4000), nodes, {ONE: 1.0})


def test_a_pod_with_resource_claims_is_not_kept_away_from_gpus() -> None:
    claiming = replace(pod({"cpu": 1000}), has_resource_claims=True)
    table = columns(node(1000), node(cpu=1000.0))
    found = gpu_fragmentation.score(claiming, table, rows(2), GpuFragmentationArgs())
    assert found.values.tolist() == [50, 50]
    assert (
        found.reason(0) == "the pod requests devices by ResourceClaims: nothing shows which of these devices are left"
    )


def test_the_left_over_share_is_the_mean_of_both_axes() -> None:
    for axis in itertools.product((0, 4), repeat=2):
        least = left_over(np.array([axis[0]]), np.array([axis[1]]), 8, 8)[0]
        assert least == (axis[0] + axis[1]) / 16


@pytest.mark.parametrize("gpus", [3, 10**6, 10**30, 10**400])
def test_a_pod_that_requests_more_gpus_than_any_node_has_gets_zero_everywhere(gpus: int) -> None:
    assert scores(wanted(gpus), [node(1000, 1000), node(1000)], HALF_AND_HALF) == [0.0, 0.0]
