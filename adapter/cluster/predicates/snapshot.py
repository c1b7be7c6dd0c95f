"""A working copy of the cluster that can be changed and put back: nodes, their pods, and what each has left.

Simulations place and evict pods in it. It belongs to one decision and one thread; what it was made from is not changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.cluster.predicates.shapes import PodShape
    from adapter.cluster.scheduling.storage import Storage
    from adapter.cluster.state import ClusterNode, ClusterPod


@dataclass(slots=True, eq=False)
class NodeInfo:
    """A node with its pods. Only its snapshot changes it."""

    node: ClusterNode
    allocatable: Mapping[str, int]
    """CPU in milli, memory and storage in bytes, others as counts."""
    requested: dict[str, int] = field(default_factory=dict)
    pods: dict[tuple[str, str], ClusterPod] = field(default_factory=dict)
    """By namespace and name, in the order in which they came."""


class Snapshot:
    """Nodes in a fixed order with their pods, and an undo log."""

    def __init__(
        self,
        nodes: Iterable[ClusterNode],
        pods: Iterable[ClusterPod],
        storage: Storage | None = None,
        namespace_labels: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Pods that have ended, are not bound, or are bound to a node that is not listed take no place."""
        raise NotImplementedError

    @property
    def nodes(self) -> Mapping[str, NodeInfo]:
        """By name, in order: those given, then those added."""
        raise NotImplementedError

    def shape(self, pod: ClusterPod) -> PodShape:
        """Return the shape of a pod, the same object for all pods that are alike to every filter."""
        raise NotImplementedError

    def add_node(self, node: ClusterNode, pods: Iterable[ClusterPod] = ()) -> NodeInfo:
        """Add a node with pods on it, such as those of DaemonSets. Raises ValueError if the name is taken."""
        raise NotImplementedError

    def remove_node(self, name: str) -> tuple[ClusterPod, ...]:
        """Remove a node and return its pods, which are in no place afterwards."""
        raise NotImplementedError

    def place(self, pod: ClusterPod, node: str) -> None:
        """Put a pod on a node, without a check. Namespace and name must not be in the snapshot yet."""
        raise NotImplementedError

    def evict(self, pod: ClusterPod) -> None:
        """Take a pod from its node."""
        raise NotImplementedError

    def checkpoint(self) -> int:
        """Return a mark for `revert`."""
        raise NotImplementedError

    def revert(self, checkpoint: int) -> None:
        """Undo all changes since the mark, the last one first."""
        raise NotImplementedError
