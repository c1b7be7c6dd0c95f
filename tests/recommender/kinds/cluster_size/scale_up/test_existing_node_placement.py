"""Only nodes without room are skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.cluster.values.constraints import NO_CONSTRAINTS, PodScheduling
from recommender.kinds.cluster_size.predicates.node_info import NodeInfo
from recommender.kinds.cluster_size.predicates.node_resources_fit import has_resources
from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
from recommender.kinds.cluster_size.scale_up.existing_node_placement import RoomyNodes
from tests.recommender.kinds.cluster_size.builders import node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AMOUNTS = st.one_of(st.integers(1, 4), st.integers(2**62 - 2, 2**70))
RESOURCES = st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), AMOUNTS)


@given(st.lists(st.tuples(RESOURCES, RESOURCES), max_size=6), RESOURCES)
def test_every_node_with_room_is_included_in_order(
    amounts: Sequence[tuple[Mapping[str, int], Mapping[str, int]]], requests: Mapping[str, int]
) -> None:
    nodes = [
        NodeInfo(node("n"), {**allocatable, "pods": 110}, requested=dict(requested))
        for allocatable, requested in amounts
    ]
    shape = PodShape("shop", {}, requests, NO_CONSTRAINTS, 0)
    found = RoomyNodes(nodes).of(shape)
    assert [info for info in found if has_resources(info, shape)] == [
        info for info in nodes if has_resources(info, shape)
    ]


def test_nodes_without_cpu_or_memory_for_the_pod_are_skipped() -> None:
    nodes = [
        NodeInfo(node("full"), {"cpu": 1000, "memory": 100}, requested={"cpu": 600}),
        NodeInfo(node("free"), {"cpu": 1000, "memory": 100}, requested={"cpu": 500}),
        NodeInfo(node("small"), {"cpu": 1000, "memory": 9}),
    ]
    found = RoomyNodes(nodes).of(PodShape("shop", {}, {"cpu": 500, "memory": 10}, NO_CONSTRAINTS, 0))
    assert [info.node.name for info in found] == ["free"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ((), ["a1", "b1", "a2", "no label"]),
        ((("pool", "a"),), ["a1", "a2"]),
        ((("pool", "a"), ("zone", "x")), ["a1", "a2"]),
        ((("pool", "c"),), []),
        ((("rack", "1"),), []),
    ],
    ids=["no selector", "a label", "its first label", "no such value", "no such label"],
)
@pytest.mark.parametrize("requests", [{}, {"cpu": 1}], ids=["no requests", "requests"])
def test_nodes_without_the_label_of_the_pods_node_selector_are_skipped(
    selector: tuple[tuple[str, str], ...], requests: dict[str, int], expected: list[str]
) -> None:
    labels = {"a1": {"pool": "a"}, "b1": {"pool": "b"}, "a2": {"pool": "a"}, "no label": {}}
    nodes = [NodeInfo(node(name, labels=its), {"cpu": 1000}) for name, its in labels.items()]
    found = RoomyNodes(nodes).of(PodShape("shop", {}, requests, PodScheduling(node_selector=selector), 0))
    assert [info.node.name for info in found] == expected


def test_an_overcommitted_node_may_take_a_pod_without_requests() -> None:
    nodes = [NodeInfo(node("full"), {"cpu": 1000}, requested={"cpu": 2000})]
    assert list(RoomyNodes(nodes).of(PodShape("shop", {}, {}, NO_CONSTRAINTS, 0))) == nodes
