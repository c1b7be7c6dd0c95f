"""Snapshots of few nodes for tests of the code that reads snapshots."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from adapter.foundation.objects.pod_requests import PodResources
from adapter.nodes.model.columns import NodeColumns, PendingPod
from adapter.nodes.model.loads import AVG, STATS, WINDOWS_SECONDS, LoadResource, LoadSnapshot, ResourceLoad
from adapter.nodes.model.nodes_snapshot import NodesSnapshot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.nodes_snapshot import ScoreBasis

GIB = 2**30
WINDOW_END = 1_700_000_900.0
NAN = float("nan")


def load(
    resource: LoadResource, averages: Sequence[float], *, estimated: Sequence[int] = (), window: int = 0
) -> ResourceLoad:
    """Return a load whose statistics all equal the average; `window` says which window it is taken from."""
    count = len(averages)
    stats = np.broadcast_to(np.array(averages, float), (len(WINDOWS_SECONDS), len(STATS), count))
    return ResourceLoad(
        resource,
        stats,
        taken_from=np.full((len(WINDOWS_SECONDS), count), window, np.int8),
        verdicts=np.zeros(count, np.int8),
        sampled_at=np.full(count, WINDOW_END),
        is_estimated=np.array([row in estimated for row in range(count)], bool),
        resolution_seconds=np.full(count, 15.0),
    )


def snapshot(
    names: Sequence[str], *loads: ResourceLoad, window_end: float = WINDOW_END, from_file: bool = False
) -> LoadSnapshot:
    """Return a snapshot of these loads."""
    return LoadSnapshot(
        tuple(names),
        {each.resource: each for each in loads},
        assembled_at=window_end + 1,
        window_end=window_end,
        from_file=from_file,
        index={name: row for row, name in enumerate(names)},
    )


def at(loads: LoadSnapshot, end: float) -> LoadSnapshot:
    """Return a snapshot whose windows and newest samples are of this time."""
    resources = {
        resource: replace(each, sampled_at=np.full(len(loads.nodes), end)) for resource, each in loads.resources.items()
    }
    return replace(loads, window_end=end, resources=resources)


def nodes_snapshot(
    averages: Mapping[str, Sequence[float]],
    *loads: ResourceLoad,
    pools: Sequence[str] = (),
    basis: ScoreBasis = "metrics",
    recent_requests: Mapping[LoadResource, Sequence[float]] | None = None,
    recent_limits: Mapping[LoadResource, Sequence[float]] | None = None,
    most_pods: float = 110,
    nodes: Sequence[ClusterNode] = (),
    pods_by_node: Mapping[str, Sequence[ClusterPod]] | None = None,
) -> NodesSnapshot:
    """Return a snapshot of nodes `node-1`, `node-2`… with 4 CPUs, 8 GiB and these averages by resource.

    `loads` replace the loads that are made of the averages.
    """
    count = len(next(iter(averages.values()), ()))
    names = tuple(f"node-{number + 1}" for number in range(count))
    capacity = {"cpu": np.full(count, 4000.0), "memory": np.full(count, 8.0 * GIB), "pods": np.full(count, most_pods)}
    ratios = {LoadResource(name): np.array(values, float) for name, values in averages.items()}
    nothing: Mapping[str, Floats] = {name: np.zeros(count) for name in ("cpu", "memory", "pods")}
    columns = NodeColumns(
        names=names,
        index={name: row for row, name in enumerate(names)},
        capacity=capacity,
        allocatable=capacity,
        requested=nothing,
        non_zero_requested=nothing,
        limits=nothing,
        mean_ratio=ratios,
        measured_ratio={each.resource: each.measured_values(0, AVG) for each in loads} or ratios,
        std_ratio={resource: np.zeros(count) for resource in ratios},
        recent_cpu_prediction_milli=np.zeros(count),
        recent_requests=_arrays(recent_requests),
        recent_limits=_arrays(recent_limits),
        zone=np.full(count, -1, np.int32),
        pool=tuple(pools) or ("",) * count,
        gpu_left_milli=((),) * count,
    )
    measured = loads or tuple(load(resource, values.tolist()) for resource, values in ratios.items())
    return NodesSnapshot(columns, snapshot(names, *measured), basis, tuple(nodes), pods_by_node or {})


def pending(
    cpu_milli: int = 0, memory: int = 0, *, gpus: int = 0, limits: Mapping[str, int] | None = None
) -> PendingPod:
    """Return a pending pod with these requests and limits."""
    requests = {"cpu": cpu_milli, "memory": memory}
    return PendingPod("shop", "web-1", resources=PodResources(requests, limits or {}, requests), gpu_count=gpus)


def _arrays(columns: Mapping[LoadResource, Sequence[float]] | None) -> Mapping[LoadResource, Floats]:
    return {resource: np.array(values, float) for resource, values in (columns or {}).items()}
