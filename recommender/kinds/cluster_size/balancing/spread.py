"""Determines how new nodes are spread over similar groups (`BalanceScaleUpBetweenGroups`)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.resource_limits import check_quota, quota_after

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.cluster_size.resource_limits import Quota


@dataclass(frozen=True, slots=True)
class GroupRoom:
    """How large a group is and may become."""

    name: str
    size: int
    max_size: int


def spread_new_nodes(groups: Sequence[GroupRoom], new_nodes: int) -> dict[str, int]:
    """Return how many of the new nodes each group gets; groups that get none are absent.

    One node at a time is added to the smallest group; among equal ones, to the first. Groups at their maximum are left
    out; nodes for which no group has room are dropped. The result has the groups in the order of their sizes before the
    growth.
    """
    growing = sorted((group for group in groups if group.size < group.max_size), key=lambda group: group.size)
    queue = [(group.size, place) for place, group in enumerate(growing)]
    heapq.heapify(queue)
    sizes = [group.size for group in growing]
    for _ in range(new_nodes):
        if not queue:
            break
        size, place = heapq.heappop(queue)
        sizes[place] = size + 1
        if size + 1 < growing[place].max_size:
            heapq.heappush(queue, (size + 1, place))
    return {group.name: size - group.size for group, size in zip(growing, sizes, strict=True) if size > group.size}


def within_quota(shares: Mapping[str, int], nodes: Mapping[str, Mapping[str, int]], quota: Quota) -> dict[str, int]:
    """Return the shares that the quota allows; groups that get no node are absent.

    The shares are cut one after the other; the nodes that are cut are not given to another group. `nodes` has, by
    group, the amounts of one node that count towards the quota.
    """
    allowed: dict[str, int] = {}
    for group, share in shares.items():
        count = check_quota(quota, nodes[group], share).allowed
        quota = quota_after(quota, nodes[group], count)
        if count:
            allowed[group] = count
    return allowed
