"""The limits of the settings as a quota: the amounts of all nodes, and the remainder."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.limits.amounts import NODES, counted_amounts
from recommender.kinds.cluster_size.limits.quotas import Quota
from recommender.kinds.cluster_size.model.size_settings import CORES, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.size_settings import SizeLimits

LIMITS: Final = "limits"
"""Name of the quota, after the key of the configuration."""


def totals(nodes: Iterable[ClusterNode]) -> Counter[str]:
    """Return the sums of the amounts of all nodes, in the units of `counted_amounts`.

    Nodes with equal amounts are grouped, and their amounts multiplied.
    """
    kinds: Counter[tuple[tuple[str, int], ...]] = Counter()
    for node in nodes:
        kinds[tuple(counted_amounts(node).items())] += 1
    total: Counter[str] = Counter()
    for amounts, count in kinds.items():
        for resource, amount in amounts:
            total[resource] += amount * count
    return total


def quota_of(limits: SizeLimits, nodes: Iterable[ClusterNode]) -> Quota:
    """Return the remainder of the limits with these nodes, including those outside groups; never less than 0."""
    largest = {NODES: limits.max_nodes, CORES: limits.max_cores, MEMORY: limits.max_memory_bytes, **limits.gpus}
    limited = {resource: limit for resource, limit in largest.items() if limit is not None}
    used = totals(nodes) if limited else Counter()
    return Quota(LIMITS, {resource: max(0, limit - used[resource]) for resource, limit in limited.items()})
