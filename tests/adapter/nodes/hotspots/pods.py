"""Pods of hot nodes for tests."""

from __future__ import annotations

from adapter.foundation.cluster.values.state import ClusterPod, ControllerReference
from adapter.foundation.objects.pod_requests import PodResources

MIB = 2**20


def pod(
    name: str,
    cpu_milli: int = 0,
    memory: int = 0,
    *,
    priority: int = 0,
    kind: str = "ReplicaSet",
    owner: ControllerReference | None = None,
    phase: str = "Running",
    is_terminating: bool = False,
) -> ClusterPod:
    """Return a pod of `node-1`; `kind` is its controller's kind, empty for no controller, unless `owner` is given."""
    requests = {"cpu": cpu_milli, "memory": memory}
    return ClusterPod(
        namespace="shop",
        name=name,
        uid=f"uid-{name}",
        node="node-1",
        labels={},
        controller=owner or (ControllerReference("apps/v1", kind, "web", "uid-web") if kind else None),
        phase=phase,
        is_terminating=is_terminating,
        bound_at=0.0,
        ended_at=None,
        priority=priority,
        resources=PodResources(requests, {}, requests),
    )
