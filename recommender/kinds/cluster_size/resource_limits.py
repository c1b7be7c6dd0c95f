"""The limits of the settings as a quota: what all nodes leave of them, and how many further nodes that allows.

The rules are those of Cluster Autoscaler's `resourcequotas`: for each limited resource that a node has, the remainder
is divided by the amount of one node, and the smallest number counts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.values.virtual_nodes import is_of_virtual_kubelet
from recommender.kinds.cluster_size.model.resources import capacity_of
from recommender.kinds.cluster_size.model.size_settings import CORES, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.size_settings import SizeLimits

NODES: Final = "nodes"

Quota: TypeAlias = "Mapping[str, int]"
"""The remainder of each limit, by resource; a resource that is absent is not limited."""


@dataclass(frozen=True, slots=True)
class QuotaVerdict:
    """How many of the wanted nodes are allowed, and why the others are not."""

    allowed: int
    exceeded: tuple[str, ...]
    """The resources of which too little is left for all wanted nodes."""


def quota_of(limits: SizeLimits, nodes: Iterable[ClusterNode]) -> Quota:
    """Return the remainder of the limits with these nodes, including those outside groups; never less than 0."""
    largest = {NODES: limits.max_nodes, CORES: limits.max_cores, MEMORY: limits.max_memory_bytes, **limits.gpus}
    limited = {resource: limit for resource, limit in largest.items() if limit is not None}
    used = _totals(nodes) if limited else Counter()
    return {resource: max(0, limit - used[resource]) for resource, limit in limited.items()}


def _totals(nodes: Iterable[ClusterNode]) -> Counter[str]:
    """Return the sums of the amounts of all nodes, in the units of `counted_amounts`.

    Nodes with equal amounts are grouped, and their amounts multiplied.
    """
    kinds = Counter(tuple(_used_amounts(node).items()) for node in nodes)
    total: Counter[str] = Counter()
    for amounts, count in kinds.items():
        for resource, amount in amounts:
            total[resource] += amount * count
    return total


def _used_amounts(node: ClusterNode) -> dict[str, int]:
    """Return what a node uses up; what a node of virtual-kubelet states is not the size of a machine."""
    return {NODES: 1} if is_of_virtual_kubelet(node) else counted_amounts(node)


def counted_amounts(node: ClusterNode) -> dict[str, int]:
    """Return what a node counts towards limits: cores, rounded up; bytes of memory; other resources; one node."""
    capacity = capacity_of(node)
    return capacity | {CORES: -(-capacity.get(CORES, 0) // 1000), MEMORY: capacity.get(MEMORY, 0), NODES: 1}


def check_quota(quota: Quota, node: Mapping[str, int], wanted: int) -> QuotaVerdict:
    """Return how many nodes the quota allows. `node` has the amounts of one node.

    Raises ValueError if the wanted number is negative.
    """
    if wanted < 0:
        raise ValueError(f"a quota is checked for {wanted} nodes: ask for 0 or more")
    counts = {resource: max(0, left) // node[resource] for resource, left in quota.items() if node.get(resource, 0) > 0}
    short = tuple(resource for resource, count in counts.items() if count < wanted)
    return QuotaVerdict(min([wanted, *counts.values()]), short)


def quota_after(quota: Quota, node: Mapping[str, int], count: int) -> Quota:
    """Return what nodes that are added leave of the quota. `node` has the amounts of one of them."""
    return {resource: left - count * node.get(resource, 0) for resource, left in quota.items()}
