"""Columns of nodes for tests of policies: what a test does not state is 0, unknown or empty."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from adapter.foundation.cluster.values.state import ClusterPod
from adapter.foundation.objects.pod_requests import PodResources
from adapter.nodes.model.columns import NodeColumns, PendingPod
from adapter.nodes.model.loads import LoadResource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.usage import UsageName
    from adapter.nodes.scores.policy_scores import PolicyScores

MIB: Final = 1024**2
CASES: Final[dict[str, Any]] = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))
CPU, MEMORY, GPU = LoadResource.CPU, LoadResource.MEMORY, LoadResource.GPU
METRIC_TYPES: Final = {"CPU": CPU, "Memory": MEMORY}


@dataclass(frozen=True)
class Node:
    """One node, with loads as ratios."""

    name: str = "node"
    capacity: Mapping[str, float] = field(default_factory=dict)
    allocatable: Mapping[str, float] | None = None
    requested: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    mean: Mapping[LoadResource, float] = field(default_factory=dict)
    std: Mapping[LoadResource, float] = field(default_factory=dict)
    usage: Mapping[UsageName, float] = field(default_factory=dict)
    recent_cpu_prediction: float = 0.0
    recent_requests: Mapping[LoadResource, float] = field(default_factory=dict)
    recent_usage_requests: Mapping[LoadResource, float] = field(default_factory=dict)
    zone: int = -1
    gpu_left: tuple[int, ...] = ()


def columns(*nodes: Node) -> NodeColumns:
    """Return the columns of the nodes, in their order."""
    names = tuple(node.name for node in nodes)
    requested = _table([node.requested for node in nodes], 0.0)
    return NodeColumns(
        names=names,
        index={name: index for index, name in enumerate(names)},
        capacity=_table([node.capacity for node in nodes], 0.0),
        allocatable=_table([node.capacity if node.allocatable is None else node.allocatable for node in nodes], 0.0),
        requested=requested,
        non_zero_requested=requested,
        limits=_table([node.limits for node in nodes], 0.0),
        mean_ratio=_table([node.mean for node in nodes], np.nan),
        measured_ratio=_table([node.mean for node in nodes], np.nan),
        std_ratio=_table([node.std for node in nodes], np.nan),
        recent_cpu_prediction_milli=np.array([node.recent_cpu_prediction for node in nodes]),
        recent_requests=_table([node.recent_requests for node in nodes], 0.0),
        recent_limits={},
        zone=np.array([node.zone for node in nodes], dtype=np.int32),
        pool=("",) * len(nodes),
        gpu_left_milli=tuple(node.gpu_left for node in nodes),
        usage_ratio=_table([node.usage for node in nodes], np.nan),
        measured_usage_ratio=_table([node.usage for node in nodes], np.nan),
        recent_usage_requests=_table([node.recent_usage_requests for node in nodes], 0.0),
    )


def _table(rows: Sequence[Mapping[Any, float]], missing: float) -> dict[Any, Floats]:
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: np.array([float(row.get(key, missing)) for row in rows]) for key in keys}


def rows(count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """Return the rows of a request for all nodes."""
    return np.arange(count)


def pod(
    requests: Mapping[str, int] | None = None,
    limits: Mapping[str, int] | None = None,
    gpu_count: int = 0,
    gpu_milli: int = 0,
) -> PendingPod:
    """Return a pod to be placed, which states all its requests."""
    amounts = dict(requests or {})
    return PendingPod(
        resources=PodResources(requests=amounts, limits=dict(limits or {}), non_zero_requests=amounts),
        gpu_count=gpu_count,
        gpu_milli=gpu_milli,
    )


def bound_pod(
    node: str,
    labels: Mapping[str, str],
    namespace: str = "default",
    phase: str = "Running",
    *,
    is_terminating: bool = False,
) -> ClusterPod:
    """Return a running pod."""
    return ClusterPod(
        namespace=namespace,
        name="other",
        uid="",
        node=node,
        labels=labels,
        controller=None,
        phase=phase,
        is_terminating=is_terminating,
        bound_at=0.0,
        ended_at=None,
        priority=0,
        resources=PodResources(),
    )


def ratios(metrics: Sequence[Mapping[str, Any]], *operators: str) -> dict[LoadResource, float]:
    """Return a case's metrics, which are in percent, as ratios; only those with some operators count."""
    return {METRIC_TYPES[item["type"]]: item["value"] / 100 for item in metrics if item["operator"] in operators}


def listed(scores: PolicyScores) -> list[float | None]:
    """Return scores with None for NaN, since None equals itself; each node must have a reason."""
    assert all(scores.reason(position) for position in range(len(scores.values)))
    return [None if np.isnan(value) else float(value) for value in scores.values]
