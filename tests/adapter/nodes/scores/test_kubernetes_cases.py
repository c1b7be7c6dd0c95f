"""The test cases of kube-scheduler's plugins and of the GPU packing baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from adapter.nodes.model.columns import PendingPod
from adapter.nodes.model.scheduling_settings import (
    GpuPackingArgs,
    MostAllocatedArgs,
    RequestedToCapacityRatioArgs,
    ResourceWeight,
    SelectorSpreadArgs,
    ShapePoint,
)
from adapter.nodes.scores import selector_spread
from adapter.nodes.scores.gpus import gpu_packing
from adapter.nodes.scores.requests import best_fit, most_allocated, requested_to_capacity_ratio
from tests.adapter.nodes.scores.builder import CASES, Node, bound_pod, columns, listed, pod, rows

if TYPE_CHECKING:
    from collections.abc import Mapping

GIB = 1024**3
OWNERS = {
    "ReplicationController": "replication_controllers",
    "ReplicaSet": "replica_sets",
    "StatefulSet": "stateful_sets",
}


def by_id(group: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", CASES[group], ids=lambda case: case["id"])


def owner_selector(case: dict[str, Any]) -> str:
    """Return one selector made of those of the Services that match the pod and of its controller."""
    wanted = case["pod"]
    pairs: dict[str, str] = {}
    for service in case["services"]:
        # The lister that Kubernetes' tests use takes an empty namespace for all.
        if (
            wanted["namespace"] in {"", service["namespace"]}
            and service["selector"].items() <= wanted["labels"].items()
        ):
            pairs |= service["selector"]
    if wanted["owner"]:
        for item in case[OWNERS[wanted["owner"]["kind"]]]:
            if item["name"] == wanted["owner"]["name"]:
                pairs |= item["selector"]
    return ",".join(f"{key}={value}" for key, value in pairs.items())


@by_id("selector_spread")
def test_selector_spread_scores_as_kubernetes_did(case: dict[str, Any]) -> None:
    zones: dict[str, int] = {}
    nodes = []
    for item in case["nodes"]:
        zone = item["labels"].get("topology.kubernetes.io/zone")
        nodes.append(Node(item["name"], zone=-1 if zone is None else zones.setdefault(zone, len(zones))))
    namespaces: dict[str, list[Any]] = {}
    for item in case["pods"]:
        namespaces.setdefault(item["namespace"], []).append(
            bound_pod(item["node"], item["labels"], item["namespace"], is_terminating=item.get("deleting", False))
        )
    wanted = PendingPod(
        namespace=case["pod"]["namespace"],
        labels=case["pod"]["labels"],
        has_spread_constraints=case["pod"].get("has_topology_spread_constraints", False),
        owner_selector=owner_selector(case),
    )
    result = selector_spread.score(wanted, columns(*nodes), rows(len(nodes)), SelectorSpreadArgs(), namespaces)
    assert dict(zip(case["expected"], listed(result), strict=True)) == case["expected"]


@pytest.mark.parametrize(
    ("counts", "zones", "expected"),
    [
        ([2, 0, 1], [0, 0, 1], [0, 33, 50]),
        ([0, 3, 1, 0], [-1, -1, -1, -1], [100, 0, 66, 100]),
        ([1, 1, 0, 0], [0, 1, 1, 2], [0, 0, 33, 100]),
        # A third that is smaller by one unit in the last place would make these 99.
        ([0, 0], [0, 1], [100, 100]),
        # The node without a zone keeps the score of nodes.
        ([2, 0, 1], [0, 0, -1], [0, 33, 50]),
        ([], [], []),
    ],
)
def test_zones_count_for_two_thirds_of_a_spread_score(
    counts: list[float], zones: list[int], expected: list[int]
) -> None:
    result = selector_spread.spread_scores(np.array(counts, dtype=np.float64), np.array(zones, dtype=np.int32))
    assert result.tolist() == expected


def test_a_spread_counts_neither_terminating_nor_ended_pods_nor_other_namespaces() -> None:
    labels = {"app": "web"}
    namespaces = {
        "default": [
            bound_pod("a", labels),
            bound_pod("b", labels, is_terminating=True),
            bound_pod("b", labels, phase="Succeeded"),
            bound_pod("b", {"app": "db"}),
        ],
        "other": [bound_pod("b", labels, "other")],
    }
    wanted = PendingPod(namespace="default", owner_selector="app=web")
    result = selector_spread.score(wanted, columns(Node("a"), Node("b")), rows(2), SelectorSpreadArgs(), namespaces)
    assert listed(result) == [0, 100]


def nodes_of(case: dict[str, Any]) -> list[Node]:
    return [Node(name, capacity, requested=case["existing"].get(name, {})) for name, capacity in case["nodes"].items()]


def weights(values: Mapping[str, int]) -> tuple[ResourceWeight, ...]:
    return tuple(ResourceWeight(name, weight) for name, weight in values.items())


@by_id("most_allocated")
def test_most_allocated_scores_as_kubernetes(case: dict[str, Any]) -> None:
    nodes = nodes_of(case)
    args = MostAllocatedArgs(weights(case["weights"]))
    result = most_allocated.score(pod(case["pod"]), columns(*nodes), rows(len(nodes)), args)
    assert dict(zip(case["nodes"], listed(result), strict=True)) == case["expected"]


@pytest.mark.parametrize(
    ("gpus", "requested_gpus", "wanted_gpus", "expected"),
    [
        (8, 2, 0, 43),  # The pod requests no GPU: (62 + 25) // 2.
        (8, 1, 1, 30),
        (8, 6, 1, 74),
        (0, 0, 1, 43),  # The node has none: it does not count.
    ],
)
def test_most_allocated_counts_an_extended_resource_if_the_pod_requests_it(
    gpus: int, requested_gpus: int, wanted_gpus: int, expected: int
) -> None:
    node = Node(
        capacity={"cpu": 8000, "memory": 64 * GIB, "nvidia.com/gpu": gpus},
        requested={"cpu": 4000, "memory": 15 * GIB, "nvidia.com/gpu": requested_gpus},
    )
    wanted = pod({"cpu": 1000, "memory": GIB, "nvidia.com/gpu": wanted_gpus})
    args = MostAllocatedArgs(weights({"cpu": 1, "memory": 1, "nvidia.com/gpu": 5}))
    assert listed(most_allocated.score(wanted, columns(node), rows(1), args)) == [expected]


@pytest.mark.parametrize("amount", [1e21, 2.0**63, 2.0**60])
def test_excessive_requests_count_as_the_whole_node(amount: float) -> None:
    node = Node(capacity={"cpu": 4000, "memory": 8 * GIB}, requested={"cpu": amount, "memory": amount})
    for policy in (
        most_allocated.score(pod({}), columns(node), rows(1), MostAllocatedArgs()),
        requested_to_capacity_ratio.score(pod({}), columns(node), rows(1), RequestedToCapacityRatioArgs()),
        best_fit.score(pod({}), columns(node), rows(1)),
    ):
        assert listed(policy) == [100]
        assert "-" not in policy.reason(0)


@by_id("requested_to_capacity_ratio")
def test_requested_to_capacity_ratio_scores_as_kubernetes(case: dict[str, Any]) -> None:
    nodes = nodes_of(case)
    args = RequestedToCapacityRatioArgs(tuple(ShapePoint(*point) for point in case["shape"]), weights(case["weights"]))
    result = requested_to_capacity_ratio.score(pod(case["pod"]), columns(*nodes), rows(len(nodes)), args)
    assert dict(zip(case["nodes"], listed(result), strict=True)) == case["expected"]


def test_requests_above_the_capacity_count_as_the_whole_capacity() -> None:
    node = Node(capacity={"cpu": 1000}, requested={"cpu": 5000})
    args = RequestedToCapacityRatioArgs((ShapePoint(0, 10), ShapePoint(100, 2)), weights({"cpu": 1}))
    assert listed(requested_to_capacity_ratio.score(pod(), columns(node), rows(1), args)) == [20]


@pytest.mark.parametrize(
    ("shape", "absent"),
    [
        pytest.param(((0, 0), (100, 10)), "memory", id="a value of 0"),
        pytest.param(((0, 10), (100, 0)), "example.com/dongle", id="a resource that the node lacks"),
    ],
)
def test_a_resource_that_does_not_count_has_no_weight(shape: tuple[tuple[int, int], ...], absent: str) -> None:
    """Half of the CPU is requested, nothing of the memory, and a device that the node does not have."""
    node, wanted = Node(capacity={"cpu": 1000, "memory": 1000}), pod({"cpu": 500, "example.com/dongle": 1})
    args = RequestedToCapacityRatioArgs(tuple(ShapePoint(*point) for point in shape), weights({"cpu": 1, absent: 3}))
    assert listed(requested_to_capacity_ratio.score(wanted, columns(node), rows(1), args)) == [50]


@by_id("broken_linear")
def test_a_function_is_linear_between_its_points_and_flat_outside(case: dict[str, Any]) -> None:
    at = np.array([x for x, _ in case["assertions"]])
    found = requested_to_capacity_ratio.broken_linear([tuple(point) for point in case["points"]], at)
    assert found.tolist() == [y for _, y in case["assertions"]]


def test_a_falling_function_is_truncated_as_in_go() -> None:
    assert requested_to_capacity_ratio.broken_linear([(0, 10), (3, 0)], np.array([1, 2, 3])).tolist() == [7, 4, 0]


def test_gpu_packing_does_not_distinguish_nodes_for_a_pod_without_gpus() -> None:
    table = columns(Node("a", gpu_left=(500,)), Node("b"))
    for wanted in (PendingPod(), PendingPod(gpu_count=1)):
        assert listed(gpu_packing.score(wanted, table, rows(2), GpuPackingArgs())) == [0, 0]


def test_best_fit_prefers_the_node_with_the_least_left_over() -> None:
    capacity = {"cpu": 4000, "memory": 8 * GIB}
    table = columns(
        Node("empty", capacity),
        Node("half", capacity, requested={"cpu": 2000, "memory": 4 * GIB}),
        Node("full", capacity, requested={"cpu": 3500, "memory": 4 * GIB}),
        Node("fitting", capacity, requested={"cpu": 3000, "memory": 7 * GIB}),
        Node("nothing", {}),
    )
    assert listed(best_fit.score(pod({"cpu": 1000, "memory": GIB}), table, rows(5))) == [19, 69, 0, 100, 0]


def test_best_fit_counts_other_resources_that_the_pod_requests() -> None:
    capacity = {"cpu": 4000, "memory": 8 * GIB, "nvidia.com/gpu": 4}
    table = columns(Node("free", capacity), Node("used", capacity, requested={"nvidia.com/gpu": 3}))
    assert listed(best_fit.score(pod({"nvidia.com/gpu": 1}), table, rows(2))) == [8, 33]


def test_reasons_tell_what_is_requested_and_how_many_pods_run() -> None:
    node = Node(capacity={"cpu": 4000, "memory": 8 * GIB}, requested={"cpu": 1000}, zone=0)
    table, wanted = columns(node, Node("b", zone=-1)), pod({"cpu": 2000})
    used = most_allocated.score(wanted, table, rows(2), MostAllocatedArgs())
    assert used.reason(0) == "cpu is requested to 75%; memory is requested to 0%"
    assert used.reason(1) == "cpu does not count; memory does not count"
    fit = best_fit.score(wanted, table, rows(2))
    assert fit.reason(0) == "there are no metrics; 38% of cpu, memory would be requested"
    assert fit.reason(1) == "there are no metrics, and the requests of the pod do not fit"
    pods = {"default": [bound_pod(name, {"app": "web"}) for name in (node.name, "b", "b")]}
    owned = PendingPod(namespace="default", owner_selector="app=web")
    spread = selector_spread.score(owned, table, rows(2), SelectorSpreadArgs(), pods)
    assert spread.reason(0) == "1 pods of the same owner run on the node, at most 2 on any; 1 run in its zone"
    assert spread.reason(1) == "2 pods of the same owner run on the node, at most 2 on any"
    assert selector_spread.score(wanted, table, rows(2), SelectorSpreadArgs(), pods).reason(0) == (
        "no Service or controller selects the pod"
    )
