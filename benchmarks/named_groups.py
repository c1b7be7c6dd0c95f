"""The cost of a decision in a cluster whose workloads each name their node group by a node selector."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, PodScheduling
from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod, ControllerReference, SchedulingFacts
from adapter.foundation.objects.pod_requests import PodResources
from adapter.foundation.objects.quantities import parse_quantity
from adapter.foundation.service.runtime.garbage_collector import no_collections
from recommender.kinds.cluster_size.calculate import decide_size
from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups, NodeTemplate
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources
from recommender.kinds.cluster_size.model.size_situation import ClusterSituation

if TYPE_CHECKING:
    from benchmarks.report import Row

_POOL: Final = "pool"
_AMOUNTS: Final = {key: parse_quantity(text) for key, text in (("cpu", "4"), ("memory", "8Gi"), ("pods", "110"))}


def named_group_rows(groups: int = 500, nodes: int = 5000, pods: int = 15_000, shapes: int = 400) -> list[Row]:
    """Return the CPU of a decision for pods that all run, and of one for pods that all wait for new nodes."""
    waiting = [_pod(f"w{number}", number % shapes, groups, 300 + number % shapes) for number in range(pods)]
    full = [replace(_pod(f"b{number}", number, groups, 3500), node=f"n{number}") for number in range(nodes)]
    running = [
        replace(_pod(f"r{number}", number, groups, 600 + number % groups % 50), node=f"n{number % nodes}")
        for number in range(pods)
    ]
    return [
        _row("all pods run", groups, nodes, running),
        _row("all pods wait for new nodes", groups, nodes, [*waiting, *full]),
    ]


def _row(case: str, groups: int, nodes: int, pods: list[ClusterPod]) -> Row:
    situation = _situation(groups, nodes, pods)
    began = time.process_time()
    with no_collections():  # as the command does
        answer = decide_size(situation, ClusterSizeSettings(NodeGroupSources()))
    cpu = time.process_time() - began
    return {
        "case": f"{groups} node groups that pods name: {case}",
        "nodes": nodes,
        "pods": len(pods),
        "pending": sum(not pod.node for pod in pods),
        "cpu_seconds": round(cpu, 2),
        "new_nodes": sum(group.recommended - (group.current or 0) for group in answer.groups),
        "removable_nodes": len(answer.removals),
        "errors": sum(len(alike.pods) for alike in answer.unschedulable),
    }


def _situation(groups: int, nodes: int, pods: list[ClusterPod]) -> ClusterSituation:
    present = [_node(f"n{number}", number % groups) for number in range(nodes)]
    found = []
    for number in range(groups):
        names = tuple(node.name for node in present[number::groups])
        template = NodeTemplate(_node(f"template-{number}", number))
        found.append(NodeGroup(f"g{number}", 0, nodes, len(names), nodes=names, template=template))
    return ClusterSituation(
        now=1_796_000_000.0,
        nodes=tuple(present),
        pods=tuple(pods),
        groups=NodeGroups(tuple(found), {name: group.name for group in found for name in group.nodes}),
        assumed_controllers=frozenset({"ReplicaSet"}),
        waits=False,
    )


def _node(name: str, group: int) -> ClusterNode:
    labels = {HOSTNAME_LABEL: name, _POOL: f"g{group}"}
    return ClusterNode(name, labels, (), False, {"Ready": "True"}, None, _AMOUNTS, _AMOUNTS)  # noqa: FBT003 - unschedulable


def _pod(name: str, number: int, groups: int, cpu_milli: int) -> ClusterPod:
    requests, selector = {"cpu": cpu_milli, "memory": 2**24}, ((_POOL, f"g{number % groups}"),)
    return ClusterPod(
        namespace="shop",
        name=name,
        uid=name,
        node="",
        labels={"app": f"app-{number}"},
        controller=ControllerReference("apps/v1", "ReplicaSet", f"app-{number}", f"app-{number}"),
        phase="Pending",
        is_terminating=False,
        bound_at=None,
        ended_at=None,
        priority=0,
        resources=PodResources(requests=requests, non_zero_requests=requests),
        facts=SchedulingFacts(PodScheduling(node_selector=selector), {}, None, None, 30.0, "Always"),
    )
