"""A node of a snapshot, and the resources that its pods use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from recommender.kinds.cluster_size.model.resources import amounts_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape, Refusal

K = TypeVar("K", bound="Hashable")
PodKey: TypeAlias = tuple[str, str]
"""Namespace and name of a pod or of a claim."""


@dataclass(slots=True, eq=False)
class NodeInfo:
    """A node with its pods. Only its snapshot changes it."""

    node: ClusterNode
    allocatable: Mapping[str, int]
    """CPU in millicores, memory and storage in bytes, others as counts."""
    requested: dict[str, int] = field(default_factory=dict)
    pods: dict[PodKey, ClusterPod] = field(default_factory=dict)
    """The pods by namespace and name, in the order in which they were added."""
    pod_count: int = 0
    """The number of `pods` and of unlisted pods, plus the pods of a running trial."""
    ports: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict)
    """How often each address is used, by protocol and port number."""
    claims: dict[PodKey, int] = field(default_factory=dict)
    """How many pods use each PersistentVolumeClaim, by namespace and name."""
    disks: dict[str, int] = field(default_factory=dict)
    """How many pods use each disk that pod specs name directly."""
    verdicts: dict[Hashable, tuple[Refusal, ...]] = field(default_factory=dict)
    """Results of filters that depend only on the node, by filter."""
    place: int = 0
    is_removed: bool = False
    is_added: bool = False
    """Whether the node exists only in the simulation."""


def new_node_info(node: ClusterNode, *, is_added: bool) -> NodeInfo:
    """Return a node without pods."""
    return NodeInfo(node, amounts_of(node.allocatable), is_added=is_added)


def take(info: NodeInfo, shape: PodShape, count: int) -> None:
    """Take resources, ports and volumes of a node for pods of a shape; give them back for a negative count."""
    info.pod_count += count
    requested = info.requested
    for name, amount in shape.requests.items():
        total = requested.get(name, 0) + count * amount
        if total:
            requested[name] = total
        else:
            del requested[name]
    if shape.is_plain:
        return
    scheduling = shape.scheduling
    for port in scheduling.host_ports:
        change_count(info.ports.setdefault((port.protocol, port.port), {}), port.address, count)
    for claim in scheduling.claims:
        change_count(info.claims, (shape.namespace, claim), count)
    for disk in scheduling.inline_volumes:
        change_count(info.disks, disk, count)


def change_count(counts: dict[K, int], key: K, count: int) -> None:
    """Add to one of the counts; a count that becomes 0 is removed."""
    total = counts.get(key, 0) + count
    if total:
        counts[key] = total
    else:
        del counts[key]
