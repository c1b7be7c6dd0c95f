"""Determines how many nodes an estimate may open, and how long it may take.

The rules are those of Cluster Autoscaler's threshold-based limiter: 0 means no limit, and a negative limit allows
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_LIMIT: Final = 0
NOTHING: Final = -1

_Amount = TypeVar("_Amount", int, float)


@dataclass(frozen=True, slots=True)
class EstimateLimit:
    """Limits of one estimate."""

    nodes: int = NO_LIMIT
    seconds: float = NO_LIMIT

    def allows(self, opened_nodes: int, elapsed_seconds: float = 0.0) -> bool:
        """Return whether a further node may be opened.

        A decision has no clock, so the caller that limits the time of an estimate passes the time since it began.
        """
        if self.nodes < 0 or self.seconds < 0:
            return False
        if 0 < self.nodes <= opened_nodes:
            return False
        return not 0 < self.seconds < elapsed_seconds


def merged_limit(limits: Iterable[EstimateLimit]) -> EstimateLimit:
    """Return the limit that results if all of these limits apply together."""
    merged = EstimateLimit()
    for limit in limits:
        merged = EstimateLimit(min_limit(merged.nodes, limit.nodes), min_limit(merged.seconds, limit.seconds))
    return merged


def min_limit(first: _Amount, second: _Amount) -> _Amount:
    """Return the stricter of two limits: a negative one stops everything, and 0 limits nothing."""
    if first < 0 or second < 0:
        return NOTHING
    if not first or not second:
        return first or second
    return min(first, second)


def cluster_capacity_limit(max_nodes: int, current_nodes: int) -> int:
    """Return how many nodes may be added before the cluster has `max_nodes`; 0 means any number."""
    if not max_nodes:
        return NO_LIMIT
    return max_nodes - current_nodes if max_nodes > current_nodes else NOTHING


def group_capacity_limit(sizes: Iterable[tuple[int, int]]) -> int:
    """Return how many nodes a group and those similar to it can take together.

    `sizes` are the maximum and the target size of each group. A group above its maximum does not reduce the number for
    the others.
    """
    room = sum(max(0, largest - target) for largest, target in sizes)
    return room if room > 0 else NOTHING
