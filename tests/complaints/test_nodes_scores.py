"""Requests of users that the scores of nodes meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from adapter.nodes.model.nodes_snapshot import NodesSnapshot
from adapter.nodes.model.scheduling_settings import (
    GpuPackingArgs,
    LoadVariationRiskBalancingArgs,
    PolicyArgs,
    PolicyName,
    PolicySettings,
    RequestedToCapacityRatioArgs,
    ResourceWeight,
    TargetLoadPackingArgs,
)
from adapter.nodes.scores.table import score_request
from tests.adapter.nodes.scores.builder import CPU, GPU, Node, columns, pod

if TYPE_CHECKING:
    from adapter.nodes.model.columns import PendingPod

PACK_GPUS = RequestedToCapacityRatioArgs(resources=(ResourceWeight("nvidia.com/gpu"),))


@pytest.mark.parametrize(
    ("name", "args"),
    [(PolicyName.REQUESTED_TO_CAPACITY_RATIO, PACK_GPUS), (PolicyName.GPU_PACKING, GpuPackingArgs())],
)
def test_a_scarce_resource_is_packed_while_the_rest_is_spread__kubernetes_68036(
    name: PolicyName, args: PolicyArgs
) -> None:
    capacity = {"cpu": 16000, "memory": 2**36, "nvidia.com/gpu": 4}
    busy_gpus = Node(
        "busy-gpus", capacity, requested={"nvidia.com/gpu": 3}, mean={CPU: 0.7}, gpu_left=(0, 0, 500, 1000)
    )
    free_gpus = Node("free-gpus", capacity, mean={CPU: 0.3}, gpu_left=(1000,) * 4)
    snapshot = NodesSnapshot(columns=columns(busy_gpus, free_gpus), loads=None, basis="metrics")
    policies = [
        PolicySettings(name, 5, args),
        PolicySettings(PolicyName.TARGET_LOAD_PACKING, 1, TargetLoadPackingArgs()),
    ]
    best = {}
    for kind, pending in {
        "with a GPU": pod({"nvidia.com/gpu": 1}, gpu_count=1, gpu_milli=500),
        "without": pod({"cpu": 500}),
    }.items():
        priorities = score_request(policies, pending, snapshot, np.array([0, 1])).priorities
        best[kind] = snapshot.columns.names[int(priorities.argmax())]
    assert best == {"with a GPU": "busy-gpus", "without": "free-gpus"}


def favoured(policy: PolicySettings, pending: PendingPod, *nodes: Node) -> str:
    """Return the node with the highest priority, which no other node may share."""
    snapshot = NodesSnapshot(columns=columns(*nodes), loads=None, basis="metrics")
    priorities = score_request([policy], pending, snapshot, np.arange(len(nodes))).priorities
    assert np.count_nonzero(priorities == priorities.max()) == 1
    return snapshot.columns.names[int(priorities.argmax())]


ONE_GPU = pod({"nvidia.com/gpu": 1}, gpu_count=1, gpu_milli=1000)


def test_gpus_are_packed_so_that_a_pod_with_two_gpus_still_fits__kueue_3756_4474() -> None:
    """There are two nodes with two GPUs each: if each had one left, the second pod would fit nowhere."""
    capacity = {"cpu": 16000, "memory": 2**36, "nvidia.com/gpu": 2}
    policy = PolicySettings(PolicyName.GPU_PACKING, 1, GpuPackingArgs())
    free = Node("free", capacity, gpu_left=(1000, 1000))
    used = Node("used", capacity, requested={"nvidia.com/gpu": 1}, gpu_left=(0, 1000))
    assert favoured(policy, ONE_GPU, free, used) == "used"
    full = Node("full", capacity, requested={"nvidia.com/gpu": 2}, gpu_left=(0, 0))
    two_gpus = pod({"nvidia.com/gpu": 2}, gpu_count=2, gpu_milli=1000)
    assert favoured(policy, two_gpus, free, full) == "free"


BALANCE_GPUS = PolicySettings(
    PolicyName.LOAD_VARIATION_RISK_BALANCING, 1, LoadVariationRiskBalancingArgs(resources=(CPU, GPU))
)


def test_the_load_of_gpus_is_balanced_over_nodes__kai_scheduler_1373() -> None:
    """Both nodes have the same number of GPUs left; only their measured load differs."""
    busy, idle = (
        Node(name, {"cpu": 16000}, mean={CPU: 0.2, GPU: load}, std={CPU: 0.0, GPU: 0.0}, gpu_left=(1000,) * 4)
        for name, load in (("busy", 0.9), ("idle", 0.1))
    )
    assert favoured(BALANCE_GPUS, ONE_GPU, busy, idle) == "idle"


def test_varying_gpu_load_counts_as_a_risk_like_that_of_cpu__koordinator_323_2560() -> None:
    bursty, steady = (
        Node(name, {"cpu": 16000}, mean={CPU: 0.2, GPU: 0.4}, std={CPU: 0.0, GPU: std}, gpu_left=(1000,) * 4)
        for name, std in (("bursty", 0.4), ("steady", 0.0))
    )
    assert favoured(BALANCE_GPUS, ONE_GPU, bursty, steady) == "steady"
