"""Nodes that take pods of one shape in turn, where each placed pod may change which of them accept the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.predicates.node_resources_fit import has_resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.predicates.filters import PodFilter
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot


class NodeTurns:
    """Nodes in a circle; the search for a place for the next pod begins at the node that took the last pod.

    While pods and nodes are only added, a node that refuses a pod refuses it until the smallest count of all domains
    changes. Nodes that have refused since the last such change are not asked again.
    """

    def __init__(self, snapshot: Snapshot, judge: PodFilter, shape: PodShape) -> None:
        """Begin without nodes; `judge` is the filter of the shape."""
        self._snapshot, self._judge, self._shape = snapshot, judge, shape
        self._static = snapshot.static_filter(shape.scheduling)
        self._nodes: list[NodeInfo] = []
        self._start = 0
        """The node that is asked first."""
        self._refused = 0
        """How many nodes before the start, in the circle, have refused a pod under the present smallest counts."""
        self._minima: tuple[int, ...] | None = None
        """The smallest counts under which they have refused; None if every node is to be asked."""

    def add(self, nodes: Iterable[NodeInfo]) -> None:
        """Add the nodes that may take a pod at the end; if earlier nodes are asked again, drop those that cannot."""
        if self._is_current() and self._refused == len(self._nodes):
            self._nodes += filter(self._may_fit, nodes)
            self._start = self._refused
        else:
            self._nodes = [info for info in (*self._nodes, *nodes) if self._may_fit(info)]
            self.forget_refusals()

    def forget_refusals(self) -> None:
        """Ask every node again, because a pod or node was removed."""
        self._minima = None

    def place(self, pods: Sequence[ClusterPod]) -> int:
        """Place pods, each on the next node that takes it, until no node takes one; return how many are placed."""
        if not self._is_current():
            self._start = 0
        for placed, pod in enumerate(pods):
            info = self._next()
            if info is None:
                return placed
            self._snapshot.place(pod, info.node.name)
        return len(pods)

    def _next(self) -> NodeInfo | None:
        if not self._is_current():
            self._refused, self._minima = 0, self._judge.spread_minima
        nodes, fits = self._nodes, self._judge.fits
        for distance in range(len(nodes) - self._refused):
            position = (self._start + distance) % len(nodes)
            if fits(nodes[position]):
                self._start = position
                self._refused += distance
                return nodes[position]
        self._refused = len(nodes)
        return None

    def _is_current(self) -> bool:
        return self._minima is not None and self._minima == self._judge.spread_minima

    def _may_fit(self, info: NodeInfo) -> bool:
        """Return whether the node exists, and its labels, taints and free resources allow a pod.

        Without the check of labels and taints, which never change, most of the work would be to ask nodes of other
        groups again for each pod.
        """
        return not info.is_removed and has_resources(info, self._shape) and not self._static.refusals(info)
