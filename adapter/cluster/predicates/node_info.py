"""A node of a snapshot, and what its pods take of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from adapter.objects.pod_requests import units_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from adapter.cluster.predicates.shapes import PodShape, Refusal
    from adapter.cluster.state import ClusterNode, ClusterPod

PodKey: TypeAlias = tuple[str, str]
"""Namespace and name."""


@dataclass(slots=True, eq=False)
class NodeInfo:
    """A node with its pods. Only its snapshot changes it."""

    node: ClusterNode
    allocatable: Mapping[str, int]
    """CPU in milli, memory and storage in bytes, others as counts."""
    requested: dict[str, int] = field(default_factory=dict)
    pods: dict[PodKey, ClusterPod] = field(default_factory=dict)
    """By namespace and name, in the order in which they came."""
    pod_count: int = 0
    """As many as `pods`, but during a trial more."""
    ports: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict)
    """By protocol and number: how often each address is taken."""
    verdicts: dict[Hashable, tuple[Refusal, ...]] = field(default_factory=dict)
    """What filters have found of the node that no pod changes, by filter."""
    place: int = 0
    is_removed: bool = False


def new_node_info(node: ClusterNode) -> NodeInfo:
    """Return a node without pods."""
    return NodeInfo(node, {name: units_of(name, amount) for name, amount in node.allocatable.items()})


def take(info: NodeInfo, shape: PodShape, count: int) -> None:
    """Take resources and ports of a node for pods of a shape; give them back for a negative count."""
    info.pod_count += count
    requested = info.requested
    for name, amount in shape.requests.items():
        total = requested.get(name, 0) + count * amount
        if total:
            requested[name] = total
        else:
            del requested[name]
    for port in shape.scheduling.host_ports:
        addresses = info.ports.setdefault((port.protocol, port.port), {})
        uses = addresses.get(port.address, 0) + count
        if uses:
            addresses[port.address] = uses
        else:
            del addresses[port.address]
