"""The plugin NodeResourcesFit: requests against the free allocatable amounts, and the number of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.amount_texts import amount_text
from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape

_PLUGIN: Final = "NodeResourcesFit"
_PODS: Final = "pods"


def has_resources(info: NodeInfo, shape: PodShape) -> bool:
    """Return whether a pod fits. A resource that the node does not state counts as zero."""
    allocatable, requested = info.allocatable, info.requested
    for name, amount in shape.requests.items():
        if amount > allocatable.get(name, 0) - requested.get(name, 0):
            return False
    return info.pod_count < allocatable.get(_PODS, 0)


def resource_refusals(info: NodeInfo, shape: PodShape) -> tuple[Refusal, ...]:
    """Return each resource that is missing; the details say how much is requested, left and allocatable."""
    short = {
        name: amount
        for name, amount in shape.requests.items()
        if amount > info.allocatable.get(name, 0) - info.requested.get(name, 0)
    }
    found = [Refusal(_PLUGIN, f"Insufficient {name}", _shortage_text(info, name, short[name])) for name in short]
    limit = info.allocatable.get(_PODS, 0)
    if info.pod_count >= limit:
        found.insert(0, Refusal(_PLUGIN, "Too many pods", f"{info.pod_count} of {limit}"))
    return tuple(found)


def room_by_resources(info: NodeInfo, shape: PodShape, at_most: int) -> int:
    """Return how many pods fit, by division."""
    allocatable, requested = info.allocatable, info.requested
    room = min(at_most, allocatable.get(_PODS, 0) - info.pod_count)
    for name, amount in shape.requests.items():
        left = allocatable.get(name, 0) - requested.get(name, 0)
        if left < amount:
            return 0
        room = min(room, left // amount)
    return max(room, 0)


def _shortage_text(info: NodeInfo, resource: str, amount: int) -> str:
    allocatable = info.allocatable.get(resource, 0)
    left = allocatable - info.requested.get(resource, 0)
    asked = amount_text(resource, amount, rounds_up=True)
    whole = amount_text(resource, allocatable, rounds_up=False)
    return f"{asked} requested, {amount_text(resource, left, rounds_up=False)} of {whole} left"
