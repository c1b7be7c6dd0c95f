"""Tries nodes for pods of one shape in a line or in a circle, without asking nodes that would refuse again."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.predicates.node_resources_fit import has_resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.predicates.filters import PodFilter
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.pod_topology_spread import SharedDomains
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot


class Candidates:
    """Nodes in the order in which they are tried, while pods are only added and none is removed.

    Thousands of nodes may refuse a pod because their domains have too many matching pods. They keep refusing until the
    smallest count of all domains rises, so until then they are not tried again for each pod.
    """

    def __init__(self, judge: PodFilter, nodes: Iterable[NodeInfo] = ()) -> None:
        self._judge = judge
        self._nodes = list(nodes)
        self._start = 0
        """Index of the next node to try: all earlier ones refuse a pod as long as the smallest counts stay the same."""
        self._minima: tuple[int, ...] | None = None

    def add(self, nodes: Iterable[NodeInfo]) -> None:
        """Add nodes at the end."""
        self._nodes += nodes

    def first_fit(self) -> NodeInfo | None:
        """Return the first node that can take a pod; drop those that never will."""
        minima = self._judge.spread_minima
        if minima is None or minima != self._minima:
            self._start, self._minima = 0, minima
        nodes, judge = self._nodes, self._judge
        while self._start < len(nodes):
            info = nodes[self._start]
            if judge.fits(info):
                return info
            if judge.refuses_for_good(info):
                del nodes[self._start]
            else:
                self._start += 1
        return None


@dataclass(slots=True, eq=False)
class _NodesOfDomains:
    """The nodes that belong to the same domains; hosts are not domains here."""

    domains: SharedDomains
    positions: list[int] = field(default_factory=list)
    """The positions in the circle of the nodes that may take a pod, in order."""

    def first_turn(self, start: int, circle: int) -> int | None:
        """Return the first turn, from `start` on, of one of the nodes in a circle of this length; None without nodes.

        Turns are positions that are counted on from one lap of the circle to the next.
        """
        positions = self.positions
        if not positions:
            return None
        lap = start - start % circle
        found = bisect_left(positions, start - lap)
        return lap + positions[found] if found < len(positions) else lap + circle + positions[0]

    def drop(self, position: int) -> None:
        """Leave out a node."""
        del self.positions[bisect_left(self.positions, position)]


class NodeTurns:
    """Nodes in a circle; the search for a place for the next pod begins at the node that took the last pod.

    While pods and nodes are only added, a node that refuses a pod refuses it until the smallest count of all domains
    changes. Nodes that have refused since the last such change are not asked again. If a domain has too many pods, none
    of its nodes is asked. So the work for a pod depends on the number of domains, and not on the number of nodes.
    """

    def __init__(self, snapshot: Snapshot, judge: PodFilter, shape: PodShape) -> None:
        """Begin without nodes; `judge` is the filter of the shape."""
        self._snapshot, self._judge, self._shape = snapshot, judge, shape
        self._static = snapshot.static_filter(shape.scheduling)
        self._nodes: list[NodeInfo] = []
        self._by_domains: dict[SharedDomains, _NodesOfDomains] = {}
        self._grouped = 0
        """How many nodes have been put into `_by_domains`."""
        self._host_minima: tuple[int, ...] = ()
        """The smallest counts of hosts under which nodes have been left out of `_by_domains`."""
        self._start = 0
        """The position that is asked first."""
        self._end = 0
        """The turn from which on all nodes have refused a pod under the current smallest counts."""
        self._turns: list[tuple[int, _NodesOfDomains]] = []
        """A heap with the next turn of each domain that may have a node for a pod."""
        self._minima: tuple[int, ...] | None = None
        """The smallest counts under which they have refused; None if every node is to be asked."""

    def add(self, nodes: Iterable[NodeInfo]) -> None:
        """Add the nodes that may take a pod at the end; if earlier nodes are asked again, drop the removed ones."""
        if self._is_current() and not self._turns:
            self._start = len(self._nodes)
            self._nodes += nodes
            self._begin(len(self._nodes))
        else:
            self._nodes = [*(info for info in self._nodes if not info.is_removed), *nodes]
            self.forget_refusals()

    def forget_refusals(self) -> None:
        """Ask every node again, because a pod or node was removed."""
        self._minima = None
        self._forget_places()

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
            self._begin(self._start + len(self._nodes))
        turns, judge = self._turns, self._judge
        while turns:
            turn, alike = turns[0]
            if judge.admits(alike.domains):
                position = turn % len(self._nodes)
                info = self._nodes[position]
                if judge.fits(info):
                    self._start = position
                    return info
                if not self._shape.scheduling.affinity:
                    alike.drop(position)
                following = alike.first_turn(turn + 1, len(self._nodes))
                if following is not None and following < self._end:
                    heapreplace(turns, (following, alike))
                    continue
            heappop(turns)
        return None

    def _begin(self, end: int) -> None:
        """Ask the nodes from the start to this turn, under the current smallest counts."""
        circle = len(self._nodes)
        host_minima = self._judge.host_minima
        if host_minima != self._host_minima:
            self._forget_places()
            self._host_minima = host_minima
        for position in range(self._grouped, circle):
            info = self._nodes[position]
            if self._may_fit(info):
                domains = self._judge.shared_domains(info)
                self._by_domains.setdefault(domains, _NodesOfDomains(domains)).positions.append(position)
        self._grouped = circle
        self._minima, self._end = self._judge.spread_minima, end
        turns = ((alike.first_turn(self._start, circle), alike) for alike in self._by_domains.values())
        self._turns = [(turn, alike) for turn, alike in turns if turn is not None and turn < end]
        heapify(self._turns)

    def _forget_places(self) -> None:
        self._grouped = 0
        self._by_domains.clear()

    def _is_current(self) -> bool:
        return self._minima is not None and self._minima == self._judge.spread_minima

    def _may_fit(self, info: NodeInfo) -> bool:
        """Return whether the node exists, and its labels, taints and free resources allow a pod.

        Without the check of labels and taints, which never change, most of the work would be to ask nodes of other
        groups again for each pod.
        """
        return not info.is_removed and has_resources(info, self._shape) and not self._static.refusals(info)
