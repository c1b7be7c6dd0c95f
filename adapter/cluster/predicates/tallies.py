"""Counts of pods by topology, which follow every change of a snapshot instead of being made anew for each check."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from adapter.cluster.predicates.node_affinity import is_selected
from adapter.cluster.predicates.node_info import change_count
from adapter.cluster.predicates.taint_toleration import untolerated_taint

if TYPE_CHECKING:
    from adapter.cluster.predicates.namespaces import Namespaces
    from adapter.cluster.predicates.node_info import NodeInfo
    from adapter.cluster.predicates.shapes import PodShape
    from adapter.cluster.scheduling.constraints import PodScheduling, PodTerm, SpreadConstraint


class Tally(ABC):
    """Counts the pods of some shapes by the values of one or more node labels."""

    @abstractmethod
    def keys_of(self, shape: PodShape, *, is_terminating: bool) -> tuple[str, ...]:
        """Return the labels by whose values pods of a shape count; none if they do not."""

    @abstractmethod
    def change(self, info: NodeInfo, keys: tuple[str, ...], count: int) -> None:
        """Count pods that came to a node, or with a negative count left it."""


class TermTally(Tally):
    """Counts the pods that match all of a pod's terms."""

    def __init__(self, terms: tuple[PodTerm, ...], namespaces: Namespaces, *, if_unknown: bool) -> None:
        """`if_unknown` is whether a namespace matches a selector of namespaces while their labels are unknown."""
        self.counts: dict[str, dict[str, int]] = {term.topology_key: {} for term in terms}
        self.total = 0
        self._terms = terms
        self._namespaces = namespaces
        self._if_unknown = if_unknown
        self.namespaces = _namespaces_of(terms)
        """The namespaces of the pods that can count; None: all."""

    def keys_of(self, shape: PodShape, *, is_terminating: bool) -> tuple[str, ...]:
        """Return all topology keys of the terms, if the pods match. A pod that is being deleted counts, too."""
        del is_terminating
        return tuple(self.counts) if self.matches(shape) else ()

    def matches(self, shape: PodShape) -> bool:
        """Whether all terms match the pods of a shape."""
        return all(self._is_meant(term, shape) for term in self._terms)

    def change(self, info: NodeInfo, keys: tuple[str, ...], count: int) -> None:
        """Count pods by the labels that the node has."""
        self.total += _change(self.counts, info, keys, count)

    def _is_meant(self, term: PodTerm, shape: PodShape) -> bool:
        if term.selector is None or not term.selector.matches(shape.labels):
            return False
        return self._namespaces.are_listed(term, shape.namespace, if_unknown=self._if_unknown)


class OpponentTally(Tally):
    """Counts the pods that have a required anti-affinity term against a shape."""

    def __init__(self, shape: PodShape, namespaces: Namespaces) -> None:
        self.counts: dict[str, dict[str, int]] = {}
        self.total = 0
        self._shape = shape
        self._namespaces = namespaces

    def keys_of(self, shape: PodShape, *, is_terminating: bool) -> tuple[str, ...]:
        """Return the topology keys of the terms that match the shape of this tally."""
        del is_terminating
        terms = (term for term in shape.scheduling.anti_affinity if self._is_meant(term))
        return tuple({term.topology_key: None for term in terms})

    def change(self, info: NodeInfo, keys: tuple[str, ...], count: int) -> None:
        """Count pods by the labels that the node has."""
        for key in keys:
            self.counts.setdefault(key, {})
        self.total += _change(self.counts, info, keys, count)

    def _is_meant(self, term: PodTerm) -> bool:
        if term.selector is None or not term.selector.matches(self._shape.labels):
            return False
        return self._namespaces.are_selected(term, self._shape.namespace)


class SpreadTally(Tally):
    """Counts the pods of one spread constraint by domain, and knows the smallest count of all domains.

    A domain is a value of the topology key on a node that has the keys of all constraints of the pod and that the
    policies of the constraint include, whether or not the node can hold the pod.
    """

    def __init__(self, shape: PodShape, constraint: SpreadConstraint) -> None:
        scheduling = shape.scheduling
        self.namespaces = frozenset({shape.namespace})
        self.counts: dict[str, int] = {}
        self._constraint = constraint
        self._keys = tuple({one.topology_key: None for one in scheduling.spread})
        self._scheduling: PodScheduling = scheduling
        self._domains: dict[NodeInfo, str] = {}
        self._nodes: dict[str, int] = {}
        self._levels: dict[int, int] = {}
        self._minimum = 0

    @property
    def minimum(self) -> int:
        """The smallest count of all domains; 0 if there are fewer domains than the constraint demands."""
        return 0 if len(self.counts) < max(self._constraint.min_domains, 1) else self._minimum

    def keys_of(self, shape: PodShape, *, is_terminating: bool) -> tuple[str, ...]:
        """Return the topology key, if the pods count. Pods that are being deleted do not.

        As in the scheduler, a selector without requirements counts no pods that are there already.
        """
        selector = self._constraint.selector
        if is_terminating or selector is None or not selector.requirements or shape.namespace not in self.namespaces:
            return ()
        return (self._constraint.topology_key,) if selector.matches(shape.labels) else ()

    def change(self, info: NodeInfo, keys: tuple[str, ...], count: int) -> None:
        """Count pods if the node belongs to a domain."""
        del keys
        value = self._domains.get(info)
        if value is not None:
            before = self.counts[value]
            self.counts[value] = before + count
            self._move(before, before + count)

    def add_node(self, info: NodeInfo) -> None:
        """Take note of a node that has no pods yet."""
        if not self._is_included(info):
            return
        value = info.node.labels[self._constraint.topology_key]
        self._domains[info] = value
        self._nodes[value] = self._nodes.get(value, 0) + 1
        if value not in self.counts:
            self.counts[value] = 0
            self._move(None, 0)

    def remove_node(self, info: NodeInfo) -> None:
        """Forget a node that has no pods any more."""
        value = self._domains.pop(info, None)
        if value is None:
            return
        self._nodes[value] -= 1
        if not self._nodes[value]:
            del self._nodes[value]
            self._move(self.counts.pop(value), None)

    def _is_included(self, info: NodeInfo) -> bool:
        node, constraint = info.node, self._constraint
        if any(key not in node.labels for key in self._keys):
            return False
        if constraint.honors_node_affinity and not is_selected(node, self._scheduling):
            return False
        return not constraint.honors_node_taints or untolerated_taint(node, self._scheduling.tolerations) is None

    def _move(self, before: int | None, after: int | None) -> None:
        """Take note that the count of one domain changes; None stands for no domain."""
        levels = self._levels
        if after is not None:
            levels[after] = levels.get(after, 0) + 1
        if before is not None:
            levels[before] -= 1
            if not levels[before]:
                del levels[before]
        if self._minimum not in levels or (after is not None and after < self._minimum):
            self._minimum = min(levels, default=0)


def _namespaces_of(terms: tuple[PodTerm, ...]) -> frozenset[str] | None:
    if any(term.namespace_selector is not None for term in terms):
        return None
    return frozenset.intersection(*(term.namespaces for term in terms))


def _change(counts: dict[str, dict[str, int]], info: NodeInfo, keys: tuple[str, ...], count: int) -> int:
    """Change the counts by topology key and value; return by how much their sum changes."""
    changed = 0
    labels = info.node.labels
    for key in keys:
        value = labels.get(key)
        if value is None:
            continue
        change_count(counts[key], value, count)
        changed += count
    return changed
