"""Quotas: how many nodes the limits allow.

The rules are those of Cluster Autoscaler's `resourcequotas`: for each limited resource that a node has, the remainder
is divided by the amount of one node, and the smallest number counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Quota:
    """The remainder of a limit."""

    name: str
    left: Mapping[str, int]
    """The remainder by resource; a resource that is absent is not limited."""
    groups: frozenset[str] | None = None
    """The groups to which it applies; None for all."""

    def applies_to(self, group: str) -> bool:
        """Return whether nodes of the group count towards the quota."""
        return self.groups is None or group in self.groups


@dataclass(frozen=True, slots=True)
class QuotaVerdict:
    """How many of the wanted nodes are allowed, and why the others are not."""

    allowed: int
    exceeded: Mapping[str, tuple[str, ...]]
    """By quota, the resources of which too little is left for all wanted nodes."""


def check_quotas(quotas: Sequence[Quota], group: str, node: Mapping[str, int], wanted: int) -> QuotaVerdict:
    """Return how many nodes of a group the quotas allow. `node` has the amounts of one node.

    Raises ValueError if the wanted number is negative.
    """
    if wanted < 0:
        raise ValueError(f"a quota is checked for {wanted} nodes: ask for 0 or more")
    allowed = wanted
    exceeded: dict[str, tuple[str, ...]] = {}
    for quota in quotas:
        if not quota.applies_to(group):
            continue
        counts = {
            resource: max(0, left) // node[resource]
            for resource, left in quota.left.items()
            if node.get(resource, 0) > 0
        }
        allowed = min([allowed, *counts.values()])
        short = tuple(resource for resource, count in counts.items() if count < wanted)
        if short:
            exceeded[quota.name] = short
    return QuotaVerdict(allowed, exceeded)


def consume_quotas(
    quotas: Sequence[Quota], group: str, node: Mapping[str, int], wanted: int
) -> tuple[QuotaVerdict, tuple[Quota, ...]]:
    """Return the verdict, and the remaining quotas; nothing is consumed unless all wanted nodes are allowed."""
    verdict = check_quotas(quotas, group, node, wanted)
    if verdict.allowed < wanted:
        return verdict, tuple(quotas)
    return verdict, tuple(_consume(quota, node, wanted) if quota.applies_to(group) else quota for quota in quotas)


def _consume(quota: Quota, node: Mapping[str, int], count: int) -> Quota:
    left = {resource: amount - count * node.get(resource, 0) for resource, amount in quota.left.items()}
    return replace(quota, left=left)
