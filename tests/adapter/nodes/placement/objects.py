"""Pods, nodes and loads as placement gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
from adapter.foundation.objects.pod_requests import ContainerSpec, PodSpecResources, pod_resources
from adapter.foundation.objects.quantities import parse_quantity
from adapter.nodes.model.loads import LoadResource, LoadSnapshot, ResourceLoad

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.objects.pod_requests import PodResources

MI = 1 << 20
END = 100_000.0
"""End of the metrics in Unix seconds."""


def resources(
    cpu: str | None = None, memory: str | None = None, limit: str | None = None, gpus: int = 0
) -> PodResources:
    """Return the resources of a pod with one container; `limit` applies to CPU."""
    requests = {"cpu": cpu, "memory": memory, "nvidia.com/gpu": gpus or None}
    stated = {name: text for name, text in requests.items() if text is not None}
    return pod_resources(PodSpecResources((ContainerSpec("c", stated, {"cpu": limit} if limit else {}),)))


def a_pod(
    name: str,
    node: str = "a",
    asks: PodResources | None = None,
    *,
    bound_at: float | None = 0.0,
    gpus: str = "",
    namespace: str = "shop",
) -> ClusterPod:
    return ClusterPod(
        namespace=namespace,
        name=name,
        uid=f"uid-{name}",
        node=node,
        labels={"app": name},
        controller=None,
        phase="Running",
        is_terminating=False,
        bound_at=bound_at,
        ended_at=None,
        priority=0,
        resources=asks or resources("100m", "64Mi"),
        gpu_allocation=gpus,
    )


def a_node(name: str, labels: Mapping[str, str] | None = None, **extra: str) -> ClusterNode:
    """Return a node of 4 cores, of which 3.5 are allocatable; `extra` are other resources."""
    more = {
        key.replace("_", "/").replace("nvidia/com", "nvidia.com"): parse_quantity(text) for key, text in extra.items()
    }
    return ClusterNode(
        name=name,
        labels=labels or {},
        taints=(),
        unschedulable=False,
        conditions={"Ready": "True"},
        created=None,
        capacity={"cpu": parse_quantity("4"), "memory": parse_quantity("8Gi"), "pods": parse_quantity("110")} | more,
        allocatable={"cpu": parse_quantity("3500m"), "memory": parse_quantity("7Gi")} | more,
    )


def loads(
    means: Mapping[str, float],
    *,
    end: float = END,
    taken_from: Sequence[Sequence[int]] | int = ((0,), (1,), (2,)),
    estimated: Sequence[str] = (),
    assembled_at: float | None = None,
) -> LoadSnapshot:
    """Return loads of CPU by node; memory is half of it, and the standard deviation a tenth."""
    nodes = tuple(sorted(means))
    found = {}
    for resource, factor in ((LoadResource.CPU, 1.0), (LoadResource.MEMORY, 0.5)):
        stats = np.full((3, 4, len(nodes)), np.nan)
        for row, name in enumerate(nodes):
            stats[:, 0, row], stats[:, 1, row] = means[name] * factor, 0.1 * factor
        found[resource] = ResourceLoad(
            resource=resource,
            stats=stats,
            taken_from=np.full((3, len(nodes)), taken_from, dtype=np.int8),
            verdicts=np.zeros(len(nodes), dtype=np.int8),
            sampled_at=np.full(len(nodes), end),
            is_estimated=np.array([name in estimated for name in nodes], dtype=np.bool_),
            resolution_seconds=np.full(len(nodes), 15.0),
        )
    index = {name: row for row, name in enumerate(nodes)}
    return LoadSnapshot(nodes, found, end if assembled_at is None else assembled_at, end, index=index)


def predicted(found: PodResources) -> float:
    """Predict each container's limit, or one and a half times its request, or a core if it has neither."""
    return found.overhead_cpu_milli + sum(
        container.cpu_limit_milli
        if container.cpu_limit_milli is not None
        else 1000.0
        if container.cpu_request_milli is None
        else 1.5 * container.cpu_request_milli
        for container in found.containers
    )
