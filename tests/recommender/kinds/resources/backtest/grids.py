"""Usage by container and step for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.resources.backtest.usage_grid import UsageGrid, edges_of
from recommender.kinds.resources.usage import ContainerRows
from recommender.kinds.resources.workloads import PodContainer, SizedWorkload, WorkloadContainer

if TYPE_CHECKING:
    from recommender.kinds.resources.histograms import FloatArray

STEPS_PER_DAY = 288


def grid_of(
    cores: FloatArray, memory: FloatArray, *, pods_of_one: bool = False, killed_on: int | None = None
) -> UsageGrid:
    """Return whole days of pods, all of one workload or each of its own; the first pod may be killed on a day."""
    count, steps = cores.shape
    pods = tuple(PodContainer("shop", f"{number:03}", "app") for number in range(count))
    owner = {pod: SizedWorkload("shop", "Deployment", "web" if pods_of_one else pod.pod) for pod in pods}
    rows = ContainerRows.of({pod: WorkloadContainer(owner[pod], "app") for pod in pods})
    days = steps // STEPS_PER_DAY
    kills = tuple(frozenset(pods[:1] if day == killed_on else ()) for day in range(days))
    edges = edges_of(days, 300)
    return UsageGrid(rows, pods, cores.astype(np.float32), memory.astype(np.float32), edges, 300, kills)
