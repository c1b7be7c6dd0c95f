"""The cost of one tenant's anti-affinity terms for a decision on the size of the whole cluster."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, PodScheduling, PodTerm
from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod, ControllerReference, SchedulingFacts
from adapter.foundation.objects.pod_requests import PodResources
from adapter.foundation.objects.quantities import parse_quantity
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from recommender.kinds.cluster_size.calculate import decide_size
from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups, NodeTemplate
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources
from recommender.kinds.cluster_size.model.size_situation import ClusterSituation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.report import Row
    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer

_KINDS: Final[Mapping[str, Callable[[str], PodTerm]]] = {
    "by label, own namespace": lambda name: _term(f"app={name}"),
    "by label, all namespaces": lambda name: replace(_term(f"app={name}"), namespace_selector=EVERYTHING),
    "against all but one, all namespaces": lambda name: replace(_term(f"app!={name}"), namespace_selector=EVERYTHING),
}


def tenant_rows(nodes: int = 500, bound: int = 5000, pending: int = 400) -> list[Row]:
    """Return the CPU of decisions with 0, 1 and 10 different terms on each of a tenant's bound pods."""
    rows = [_row("none", (), nodes, bound, pending)]
    for kind, term in _KINDS.items():
        for count in (1, 10):
            terms = [tuple(term(f"x{number}-{one}") for one in range(count)) for number in range(bound)]
            rows.append(_row(f"{count} {kind}", terms, nodes, bound, pending))
    return rows


def _row(terms: str, its: Sequence[tuple[PodTerm, ...]], nodes: int, bound: int, pending: int) -> Row:
    situation = _situation(its, nodes, bound, pending)
    began = time.process_time()
    answer = decide_size(situation, ClusterSizeSettings(NodeGroupSources()))
    cpu = time.process_time() - began
    return {
        "case": f"terms of each bound pod: {terms}",
        "nodes": nodes,
        "pods": bound,
        "pending": pending,
        "cpu_seconds": round(cpu, 2),
        "errors": _errors(answer),
    }


def _errors(answer: ClusterSizeAnswer) -> int:
    """Return how many pending pods are unschedulable by the answer."""
    return sum(len(alike.pods) for alike in answer.unschedulable)


def _situation(its: Sequence[tuple[PodTerm, ...]], nodes: int, bound: int, pending: int) -> ClusterSituation:
    names = tuple(f"n{number}" for number in range(nodes))
    group = NodeGroup("a", 0, 2 * nodes, nodes, nodes=names, template=NodeTemplate(_node("template")))
    pods = [
        _pod("evil", f"e{number}", names[number % nodes], its[number] if its else ()) for number in range(bound)
    ] + [_pod("shop", f"w{number}", "", ()) for number in range(pending)]
    return ClusterSituation(
        now=1_796_000_000.0,
        nodes=tuple(map(_node, names)),
        pods=tuple(pods),
        groups=NodeGroups((group,), dict.fromkeys(names, group.name)),
        assumed_controllers=frozenset({"ReplicaSet"}),
        waits=False,
    )


def _term(selector: str) -> PodTerm:
    return PodTerm(HOSTNAME_LABEL, parse_selector(selector), frozenset({"evil"}))


def _node(name: str) -> ClusterNode:
    amounts = {key: parse_quantity(text) for key, text in (("cpu", "4"), ("memory", "8Gi"), ("pods", "110"))}
    return ClusterNode(name, {HOSTNAME_LABEL: name}, (), False, {"Ready": "True"}, None, amounts, amounts)  # noqa: FBT003 - unschedulable


def _pod(namespace: str, name: str, node: str, terms: tuple[PodTerm, ...]) -> ClusterPod:
    requests = {"cpu": 50, "memory": 2**24}
    return ClusterPod(
        namespace=namespace,
        name=name,
        uid=name,
        node=node,
        labels={"app": name},
        controller=ControllerReference("apps/v1", "ReplicaSet", name, name),
        phase="Running" if node else "Pending",
        is_terminating=False,
        bound_at=None,
        ended_at=None,
        priority=0,
        resources=PodResources(requests=requests, non_zero_requests=requests),
        facts=SchedulingFacts(PodScheduling(anti_affinity=terms), {}, None, None, 30.0, "Always"),
    )
