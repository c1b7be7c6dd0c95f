"""Sums over the pods of one node, and which of them were bound lately."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.objects.pod_requests import CPU, MEMORY, PodResources, raised_limits
from adapter.nodes.placement.gpus import gpu_count, gpu_left, gpu_shapes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.cluster.values.state import ClusterPod
    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.workload import GpuPodKind

PODS: Final = "pods"
LATELY_SECONDS: Final = 1800.0
"""Pods that were bound less than this long ago are listed, since they may be recent: bound less than 15 minutes before
the end of the metrics, or later. Metrics that are older than 15 minutes are not served."""


BOUND_AT, CPU_PREDICTION, CPU_REQUEST, CPU_LIMIT, MEMORY_REQUEST, MEMORY_LIMIT, GPU_REQUEST = range(7)
"""Columns of the data about recently bound pods."""

NONE_BOUND: Final = np.empty((0, 7))


@dataclass(frozen=True, slots=True, eq=False)
class NodeSums:
    """Sums over the pods of a node, as the scheduler counts them."""

    requested: Mapping[str, int]
    """Requests by resource, including `pods`, the number of pods."""
    non_zero_requested: Mapping[str, int]
    limits: Mapping[str, int]
    bound_lately: Floats
    """One row for each pod that may be recent, of shape (pods, 7)."""
    gpu_left_milli: tuple[int, ...]
    gpu_shapes: Counter[GpuPodKind]
    """How many pods of each kind request GPUs."""
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SumRules:
    """The settings that sums depend on, in addition to the pods."""

    predict_cpu: Callable[[PodResources], float]
    """The CPU in millicores that TargetLoadPacking expects of a pod."""
    gpu_resources: tuple[str, ...]


def sums_of(pods: tuple[ClusterPod, ...], gpus: int, rules: SumRules, now: float) -> NodeSums:
    """Return the sums over pods that have not ended, on a node with this number of GPUs."""
    requested: Counter[str] = Counter({PODS: len(pods)})
    non_zero: Counter[str] = Counter()
    limits = {CPU: 0, MEMORY: 0}
    lately = []
    for pod in pods:
        resources = pod.resources
        for name, amount in resources.requests.items():
            requested[name] += amount
        for name, amount in resources.non_zero_requests.items():
            non_zero[name] += amount
        for name in limits:
            limits[name] += raised_limits(resources, name)
        if pod.bound_at is not None and pod.bound_at > now - LATELY_SECONDS:
            lately.append(_bound_columns(pod.bound_at, resources, rules))
    left, problems = gpu_left(gpus, pods, rules.gpu_resources)
    shapes = gpu_shapes(pods, rules.gpu_resources)
    bound_lately = np.array(lately, dtype=np.float64) if lately else NONE_BOUND
    return NodeSums(requested, non_zero, limits, bound_lately, left, shapes, tuple(problems))


def _bound_columns(at: float, resources: PodResources, rules: SumRules) -> tuple[float, ...]:
    """Return a pod's row of the data about recently bound pods."""
    return (
        at,
        rules.predict_cpu(resources),
        resources.requests.get(CPU, 0),
        raised_limits(resources, CPU),
        resources.requests.get(MEMORY, 0),
        raised_limits(resources, MEMORY),
        gpu_count(resources.requests, rules.gpu_resources),
    )
