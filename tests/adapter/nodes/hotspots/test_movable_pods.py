from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.cluster.values.state import ControllerReference
from adapter.nodes.hotspots.movable_pods import movable_pods
from tests.adapter.nodes.hotspots.pods import MIB, pod


@pytest.mark.parametrize(
    "bound",
    [
        pod("of-a-daemon-set", kind="DaemonSet"),
        pod("mirror", owner=ControllerReference("v1", "Node", "node-1", "uid-node-1")),
        pod("terminating", is_terminating=True),
        pod("done", phase="Succeeded"),
        pod("failed", phase="Failed"),
    ],
    ids=lambda bound: bound.name,
)
def test_daemon_set_mirror_and_ending_pods_are_not_movable(bound: object) -> None:
    found = movable_pods([bound, pod("web"), pod("alone", kind="")], {})  # type: ignore[list-item]
    assert [each.pod.name for each in found] == ["alone", "web"]


@pytest.mark.parametrize(
    "owner",
    [
        ControllerReference("evil.io/v1", "DaemonSet", "web", "uid-web"),
        ControllerReference("apps/v1", "DaemonSet", "web", "made-up"),
        ControllerReference("evil.io/v1", "Node", "node-1", "uid-node-1"),
        ControllerReference("v1", "Node", "node-2", "uid-node-2"),
        ControllerReference("v1", "Node", "node-1", "made-up"),
    ],
    ids=str,
)
def test_pods_with_forged_owners_are_movable(owner: ControllerReference) -> None:
    """In an attack, the creator of a pod makes up its owners so that others leave the hot node first."""
    found = movable_pods([pod("evil", 900, owner=owner), pod("web", 100)], {"cpu": 500.0}, {"uid-cni"}, "uid-node-1")
    assert [(each.pod.name, each.is_match) for each in found] == [("evil", True), ("web", False)]


def test_pods_of_existing_daemon_sets_are_not_movable() -> None:
    owner = ControllerReference("apps/v1", "DaemonSet", "cni", "uid-cni")
    assert not movable_pods([pod("cni", owner=owner)], {}, {"uid-cni"}, "uid-node-1")


def test_pods_of_low_priority_come_first_and_then_large_ones() -> None:
    pods = [pod("vip", 900, priority=9), pod("small", 100), pod("large", 500), pod("batch", 50, priority=-1)]
    assert [each.pod.name for each in movable_pods(pods, {"cpu": 1.0})] == ["batch", "large", "small", "vip"]


@pytest.mark.parametrize(
    ("sizes", "excess", "matching"),
    [
        ([1000, 500, 200], 450.0, [500]),
        ([1000, 500, 200], 600.0, [1000]),
        ([1000, 500, 200], 1100.0, [1000, 200]),
        ([1000, 500, 200], 9000.0, [1000, 500, 200]),
        ([1000, 500, 200], 0.0, []),
        ([0, 0], 100.0, []),
    ],
)
def test_the_pods_that_match_the_excess_are_few_and_not_larger_than_needed(
    sizes: list[int], excess: float, matching: list[int]
) -> None:
    found = movable_pods([pod(f"p{size}-{number}", size) for number, size in enumerate(sizes)], {"cpu": excess})
    assert [each.pod.resources.requests["cpu"] for each in found if each.is_match] == matching


def test_a_pod_of_higher_priority_leaves_only_if_the_others_are_not_enough() -> None:
    pods = [pod("fits", 500, priority=5), pod("low", 300), pod("lowest", 300, priority=-5)]
    assert [each.pod.name for each in movable_pods(pods, {"cpu": 500.0}) if each.is_match] == ["lowest", "low"]


def test_a_pod_that_matches_the_excess_of_one_resource_counts_for_the_other() -> None:
    pods = [pod("both", 1000, 1000 * MIB), pod("memory", 0, 200 * MIB)]
    found = movable_pods(pods, {"cpu": 800.0, "memory": 1100.0 * MIB})
    assert [each.pod.name for each in found if each.is_match] == ["both", "memory"]
    enough = movable_pods(pods, {"cpu": 800.0, "memory": 900.0 * MIB})
    assert [each.pod.name for each in enough if each.is_match] == ["both"]


@given(
    st.lists(st.tuples(st.integers(0, 2000), st.integers(-2, 2)), max_size=12),
    st.floats(1, 5000),
)
def test_matching_pods_cover_the_excess_if_possible_and_none_is_unnecessary(
    shapes: list[tuple[int, int]], excess: float
) -> None:
    found = movable_pods([pod(f"p{i}", cpu, priority=level) for i, (cpu, level) in enumerate(shapes)], {"cpu": excess})
    matched = [each.pod.resources.requests["cpu"] for each in found if each.is_match]
    total = sum(cpu for cpu, _ in shapes)
    assert len(found) == len(shapes)
    assert sum(matched) >= min(excess, total)
    assert not matched or sum(matched) - max(matched) < excess
