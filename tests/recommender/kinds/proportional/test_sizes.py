"""Sizes of containers grow with the cluster."""

from __future__ import annotations

import pytest

from recommender.kinds.proportional.parameters import ResourceStep
from recommender.kinds.proportional.sizes import size_of


@pytest.mark.parametrize(
    ("step", "nodes", "cores", "size"),
    [
        (ResourceStep("64Mi", step="2Mi", nodes_per_step=4), 5, 0, "68Mi"),
        (ResourceStep("100m", step="10m", cores_per_step=8), 0, 17, "130m"),
        (ResourceStep("100m", step="10m", cores_per_step=8, nodes_per_step=1), 5, 17, "150m"),
        (ResourceStep("100m", max="1", step="100m", nodes_per_step=1), 100, 0, "1"),
        (ResourceStep("100m", max="0", step="100m", nodes_per_step=1), 10, 0, "1100m"),
        (ResourceStep("0", step="10", cores_per_step=64, nodes_per_step=4), 3, 64, "10"),
        (ResourceStep("0", step="1Gi", nodes_per_step=2), 4, 0, "2Gi"),
        (ResourceStep("1"), 100, 100, "1"),
        (ResourceStep("10m", step="1m", nodes_per_step=-2), 20, 20, "10m"),
    ],
    ids=[
        "memory",
        "cpu",
        "the larger dimension",
        "max",
        "max 0 is no limit",
        "both dimensions once",
        "base 0 has the unit of the step",
        "base alone",
        "a negative number of nodes per step",
    ],
)
def test_a_size_grows_by_steps(step: ResourceStep, nodes: int, cores: int, size: str) -> None:
    assert str(size_of(nodes, cores, step)) == size
