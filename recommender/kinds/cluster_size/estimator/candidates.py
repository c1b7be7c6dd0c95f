"""Nodes that may still take a pod of a shape later, although they may refuse it for now."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recommender.kinds.cluster_size.predicates.filters import PodFilter
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo


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
