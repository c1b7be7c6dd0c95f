"""Estimates beside references: the peer's own benchmark, and the optimum of small random clusters."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod, ControllerReference
from adapter.foundation.objects.pod_requests import PodResources
from adapter.foundation.objects.quantities import parse_quantity
from benchmarks.exact_packing import least_cost_exactly
from benchmarks.tally import quantile
from recommender.kinds.cluster_size.estimator.binpacking import estimate
from recommender.kinds.cluster_size.estimator.equivalence import pod_groups
from recommender.kinds.cluster_size.estimator.least_nodes import lower_bound
from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeTemplate
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Row

PEER_NODES: Final = 2595
_MIB: Final = 2**20
_LARGEST_NODES: Final = 8
"""The largest number of nodes for which the exact solver is used."""


def peer_estimate(reference_seconds: float) -> Row:
    """Return the row of 51,000 pods: 50,000 of 50m and 100 bytes, 1,000 of 95m and 190 bytes, at most 3,000 nodes."""
    pods = [*_pods("small", 50_000, 50, 100), *_pods("large", 1000, 95, 190)]
    template = NodeTemplate(_node("template", 1000, 5000 * _MIB, 100))
    snapshot = Snapshot([_node("oldnode", 100, 100 * _MIB, 10)], [])
    began, cpu = time.perf_counter(), time.process_time()
    groups = pod_groups(pods, snapshot)
    found = estimate(snapshot, groups, template, name_prefix="new", max_nodes=3000)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    return {
        "case": "estimate of the peer's benchmark",
        "pods": len(pods),
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
        "reference_seconds": reference_seconds,
        "new_nodes": found.node_count,
        "reference_nodes": PEER_NODES,
        "errors": 0 if (found.node_count, len(found.pods)) == (PEER_NODES, len(pods)) else 1,
    }


def gap_rows(clusters: int) -> list[Row]:
    """Return the rows about how many more nodes than the optimum estimates have, for one resource and for two."""
    return [_gap_row(clusters, has_memory=False), _gap_row(clusters, has_memory=True)]


def _gap_row(clusters: int, *, has_memory: bool) -> Row:
    random = Random(17)
    ratios, bounds, unproved, errors = [], [], 0, 0
    for _ in range(clusters):
        sizes = [
            (random.randint(1, 4), random.randint(3, 38) * 100, random.randint(1, 15) * 1024 * has_memory)
            for _ in range(random.randint(2, 5))
        ]
        nodes, bound = _estimated(sizes)
        if nodes > _LARGEST_NODES:
            continue
        pods = [(count, {"cpu": cpu, "memory": memory, "pods": 1}) for count, cpu, memory in sizes]
        best = least_cost_exactly(pods, [{"cpu": 4000, "memory": 16 * 1024, "pods": 110}], [1.0], nodes)
        if best is None:
            unproved += 1
            continue
        optimum = round(best)
        is_wrong = not bound <= optimum <= nodes
        if not has_memory:
            # First-fit decreasing guarantees this for one resource: at most 11/9 of the optimum plus 6/9.
            is_wrong = is_wrong or 9 * nodes > 11 * optimum + 6
        errors += is_wrong
        ratios.append(nodes / optimum)
        bounds.append(bound / optimum)
    return {
        "case": f"gap to the optimum, {'cpu and memory' if has_memory else 'cpu alone'}",
        "clusters": len(ratios),
        "unproved": unproved,
        "optimal_percent": round(100.0 * sum(ratio == 1.0 for ratio in ratios) / max(1, len(ratios)), 1),
        **_quantiles("nodes_to_optimum", ratios),
        "bound_to_optimum_lowest": round(min(bounds, default=0.0), 3),
        "bound_to_optimum_p50": _rounded(bounds, 0.5),
        "errors": errors,
    }


def _quantiles(name: str, ratios: Sequence[float]) -> Row:
    return {
        f"{name}_p50": _rounded(ratios, 0.5),
        f"{name}_p90": _rounded(ratios, 0.9),
        f"{name}_p99": _rounded(ratios, 0.99),
        f"{name}_worst": round(max(ratios, default=0.0), 3),
    }


def _rounded(ratios: Sequence[float], share: float) -> float | None:
    found = quantile(sorted(ratios), share)
    return None if found is None else round(found, 3)


def _estimated(sizes: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
    """Return the number of nodes with 4 cores and 16 GiB that an estimate opens, and the lower bound."""
    snapshot = Snapshot([], [])
    pods = [
        pod
        for index, (count, cpu, memory) in enumerate(sizes)
        for pod in _pods(f"shape-{index}", count, cpu, memory * _MIB)
    ]
    groups = pod_groups(pods, snapshot)
    template = NodeTemplate(_node("template", 4000, 16 * 1024 * _MIB, 110))
    found = estimate(snapshot, groups, template, name_prefix="new", max_nodes=len(pods))
    return found.node_count, lower_bound(groups, [NodeGroup("group", 0, 100, 0, template=template)], snapshot)


def _pods(name: str, count: int, cpu_milli: int, memory_bytes: int) -> list[ClusterPod]:
    owner = ControllerReference("apps/v1", "ReplicaSet", name, name)
    requests = {"cpu": cpu_milli, "memory": memory_bytes}
    resources, labels = PodResources(requests=requests, non_zero_requests=requests), {"app": name}
    return [
        ClusterPod(
            namespace="default",
            name=f"{name}-{number}",
            uid=f"{name}-{number}",
            node="",
            labels=labels,
            controller=owner,
            phase="Pending",
            is_terminating=False,
            bound_at=None,
            ended_at=None,
            priority=0,
            resources=resources,
        )
        for number in range(count)
    ]


def _node(name: str, cpu_milli: int, memory_bytes: int, pods: int) -> ClusterNode:
    texts = {"cpu": f"{cpu_milli}m", "memory": str(memory_bytes), "pods": str(pods)}
    amounts = {resource: parse_quantity(text) for resource, text in texts.items()}
    return ClusterNode(name, {}, (), False, {"Ready": "True"}, None, amounts, amounts)  # noqa: FBT003 - unschedulable
