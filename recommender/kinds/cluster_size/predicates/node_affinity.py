"""The plugin NodeAffinity: node selectors and required node affinity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.constraints import NodeSelectorTerm, PodScheduling
    from adapter.foundation.cluster.values.state import ClusterNode

CONFLICT: Final = Refusal("NodeAffinity", "pod affinity terms conflict")
"""The refusal if each term names nodes, but no node is named by all fields of a term."""

_MISMATCH: Final = (Refusal("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"),)
_NOT_NAMED: Final = (Refusal("NodeAffinity", "node(s) didn't satisfy plugin(s) [NodeAffinity]"),)


def named_nodes(scheduling: PodScheduling) -> frozenset[str] | None:
    """Return the nodes that the terms name, if each term names some; None if one term allows all names.

    The scheduler does not even look at other nodes: they are refused with a reason of their own before all filters.
    """
    names: set[str] = set()
    for term in scheduling.node_terms or ():
        if term.name_in is None:
            return None
        names.update(term.name_in)
    return frozenset(names) if scheduling.node_terms else None


def unnamed_refusals(node: ClusterNode, names: frozenset[str] | None) -> tuple[Refusal, ...]:
    """Return the refusal of a node that is not among those that the terms name."""
    return () if names is None or node.name in names else _NOT_NAMED


def affinity_refusals(node: ClusterNode, scheduling: PodScheduling) -> tuple[Refusal, ...]:
    """Return the refusal by node selector and required node affinity."""
    return () if is_selected(node, scheduling) else _MISMATCH


def is_selected(node: ClusterNode, scheduling: PodScheduling) -> bool:
    """Return whether the node matches the node selector and one of the terms."""
    labels = node.labels
    if any(labels.get(key) != value for key, value in scheduling.node_selector):
        return False
    return scheduling.node_terms is None or matches_a_term(scheduling.node_terms, labels, node.name)


def matches_a_term(terms: tuple[NodeSelectorTerm, ...], labels: Mapping[str, str], name: str | None) -> bool:
    """Return whether one of the terms matches. A term without any requirement matches nothing.

    If `name` is None, the terms' requirements on the name are ignored.
    """
    return any(_matches(term, labels, name) for term in terms)


def mentioned_keys(terms: tuple[NodeSelectorTerm, ...]) -> frozenset[str]:
    """Return the labels on which the verdict of terms depends."""
    return frozenset(requirement.key for term in terms for requirement in term.labels)


def mentions_names(terms: tuple[NodeSelectorTerm, ...]) -> bool:
    """Return whether the verdict of terms depends on the node's name."""
    return any(term.name_in is not None or term.name_not_in for term in terms)


def _matches(term: NodeSelectorTerm, labels: Mapping[str, str], name: str | None) -> bool:
    if not term.labels and term.name_in is None and not term.name_not_in:
        return False
    if name is not None and (name in term.name_not_in or (term.name_in is not None and name not in term.name_in)):
        return False
    return all(requirement.matches(labels) for requirement in term.labels)
