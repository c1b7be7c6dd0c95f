"""Nodes and pods for tests of what the scheduler would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.constraints import NO_CONSTRAINTS, PodScheduling
from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod, SchedulingFacts, Taint
from adapter.foundation.objects.pod_requests import PodResources
from adapter.foundation.objects.quantities import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

FOUR_CORES = {"cpu": "4", "memory": "8Gi", "pods": "110"}


def node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
    unschedulable: bool = False,
) -> ClusterNode:
    """Return a ready node of four cores with its name as hostname."""
    amounts = {key: parse_quantity(text) for key, text in (FOUR_CORES if allocatable is None else allocatable).items()}
    return ClusterNode(
        name=name,
        labels={"kubernetes.io/hostname": name} | dict(labels or {}),
        taints=taints,
        unschedulable=unschedulable,
        conditions={"Ready": "True"},
        created=None,
        capacity=amounts,
        allocatable=amounts,
    )


def pod(
    name: str,
    *,
    node: str = "",
    namespace: str = "shop",
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, int] | None = None,
    scheduling: PodScheduling = NO_CONSTRAINTS,
    phase: str = "Running",
    is_terminating: bool = False,
    priority: int = 0,
) -> ClusterPod:
    """Return a pod that requests amounts in milli, bytes or counts."""
    facts = SchedulingFacts(
        scheduling=scheduling,
        annotations={},
        created=None,
        deleted=None,
        grace_seconds=30,
        restart_policy="Always",
    )
    return ClusterPod(
        namespace=namespace,
        name=name,
        uid=name,
        node=node,
        labels=dict(labels or {}),
        controller=None,
        phase=phase,
        is_terminating=is_terminating,
        bound_at=None,
        ended_at=None,
        priority=priority,
        resources=PodResources(requests=dict(requests or {})),
        facts=facts,
    )
