"""Nodes by the labels that pods ask for, so that pods that name their node group are tried only on its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.objects.grouping import group_values
from adapter.foundation.objects.requirements import Operator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapter.foundation.cluster.values.constraints import NodeSelectorTerm, PodScheduling
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo

_Label: TypeAlias = "tuple[str, str]"


class LabelledNodes:
    """The places of nodes in a sequence, by their labels."""

    def __init__(self, nodes: Sequence[NodeInfo]) -> None:
        self._nodes = nodes
        self._by_key: dict[str, dict[str | None, list[int]]] = {}

    def selected(self, scheduling: PodScheduling) -> Sequence[int]:
        """Return the places, in order, of the nodes with a label that the pod names; all others refuse it.

        That is the first label of its node selector, or else one of those that the terms of its node affinity list.
        """
        labels = scheduling.node_selector[:1] or _listed_labels(scheduling.node_terms or ())
        if labels is None:
            return range(len(self._nodes))
        if len(labels) == 1:
            return self._with_label(*labels[0])
        return sorted({place for key, value in labels for place in self._with_label(key, value)})

    def _with_label(self, key: str, value: str) -> Sequence[int]:
        by_value = self._by_key.get(key)
        if by_value is None:
            labelled = ((info.node.labels.get(key), place) for place, info in enumerate(self._nodes))
            by_value = self._by_key[key] = group_values(labelled)
        return by_value.get(value, ())


def _listed_labels(terms: Sequence[NodeSelectorTerm]) -> Sequence[_Label] | None:
    """Return labels of which a node has at least one if a term matches it; None if some term lists no values."""
    found = [next(_lists(term), ()) for term in terms]
    return [label for labels in found for label in labels] if found and all(found) else None


def _lists(term: NodeSelectorTerm) -> Iterator[Sequence[_Label]]:
    for one in term.labels:
        if one.operator is Operator.IN:
            yield [(one.key, value) for value in one.values]
