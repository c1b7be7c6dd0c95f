"""What users asked for that the scores of nodes answer."""

from __future__ import annotations

import numpy as np
import pytest

from adapter.nodes.model.board import Board
from adapter.nodes.model.settings import (
    GpuPackingArgs,
    PolicyArgs,
    PolicyName,
    PolicySettings,
    RequestedToCapacityRatioArgs,
    ResourceWeight,
    TargetLoadPackingArgs,
)
from adapter.nodes.scores.table import score_request
from tests.nodes.scores.builder import CPU, Node, columns, pod

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
    board = Board(columns=columns(busy_gpus, free_gpus), loads=None, basis="metrics")
    policies = [
        PolicySettings(name, 5, args),
        PolicySettings(PolicyName.TARGET_LOAD_PACKING, 1, TargetLoadPackingArgs()),
    ]
    best = {}
    for kind, pending in {
        "with a GPU": pod({"nvidia.com/gpu": 1}, gpu_count=1, gpu_milli=500),
        "without": pod({"cpu": 500}),
    }.items():
        priorities = score_request(policies, pending, board, np.array([0, 1])).priorities
        best[kind] = board.columns.names[int(priorities.argmax())]
    assert best == {"with a GPU": "busy-gpus", "without": "free-gpus"}
