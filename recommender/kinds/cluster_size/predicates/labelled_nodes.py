"""Nodes by the labels that node selectors name, so that pods that name their node group are tried only on its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.grouping import group_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo


class LabelledNodes:
    """The places of nodes in a sequence, by their labels."""

    def __init__(self, nodes: Sequence[NodeInfo]) -> None:
        self._nodes = nodes
        self._by_key: dict[str, dict[str | None, list[int]]] = {}

    def selected(self, selector: tuple[tuple[str, str], ...]) -> Sequence[int]:
        """Return the places, in order, of the nodes with the first label of a node selector; all others refuse it."""
        if not selector:
            return range(len(self._nodes))
        key, value = selector[0]
        by_value = self._by_key.get(key)
        if by_value is None:
            labelled = ((info.node.labels.get(key), place) for place, info in enumerate(self._nodes))
            by_value = self._by_key[key] = group_values(labelled)
        return by_value.get(value, ())
