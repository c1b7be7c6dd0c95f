"""Counts nodes and cores as cluster-proportional-autoscaler counts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.objects.selectors import EVERYTHING, Selector

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from adapter.foundation.cluster.values.state import ClusterNode

_NANOS_PER_CORE = 10**9


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """How many nodes there are, and how many cores they offer to pods."""

    nodes: int
    schedulable_nodes: int
    """Nodes that are not cordoned and have the condition `Ready=True`."""
    cores: int
    """The sum of allocatable CPU, rounded up to whole cores."""
    schedulable_cores: int


def count_nodes(
    nodes: Iterable[ClusterNode], selector: Selector = EVERYTHING, ignore_taints: Collection[str] = ()
) -> NodeCounts:
    """Count the nodes that the selector matches and that have no taint with one of these keys.

    Other taints have no effect, and a node without allocatable CPU counts with zero cores. The sum is exact and is
    rounded once, as in `k8sclient.go` of cluster-proportional-autoscaler.
    """
    total = schedulable = nanos = schedulable_nanos = 0
    for node in matching_nodes(nodes, selector) if selector.requirements else nodes:
        if ignore_taints and any(taint.key in ignore_taints for taint in node.taints):
            continue
        cpu = node.allocatable.get("cpu")
        amount = 0 if cpu is None else cpu.nanos
        total += 1
        nanos += amount
        if not node.unschedulable and node.conditions.get("Ready") == "True":
            schedulable += 1
            schedulable_nanos += amount
    return NodeCounts(total, schedulable, _whole_cores(nanos), _whole_cores(schedulable_nanos))


def matching_nodes(nodes: Iterable[ClusterNode], selector: Selector) -> Iterator[ClusterNode]:
    """Yield the nodes that the selector matches; each combination of the labels that it reads is matched once."""
    keys = tuple(selector.keys)
    verdicts: dict[tuple[str | None, ...], bool] = {}
    for node in nodes:
        values = tuple(map(node.labels.get, keys))
        verdict = verdicts.get(values)
        if verdict is None:
            verdict = verdicts[values] = selector.matches(node.labels)
        if verdict:
            yield node


def _whole_cores(nanos: int) -> int:
    return -(-nanos // _NANOS_PER_CORE)
