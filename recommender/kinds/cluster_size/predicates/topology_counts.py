"""Counts of pods by topology, which follow every change of a snapshot instead of being recomputed for each check."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.predicates.node_info import change_count
from recommender.kinds.cluster_size.predicates.selector_index import selective_requirement

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.constraints import PodTerm, SpreadConstraint
    from adapter.foundation.objects.requirements import Requirement
    from recommender.kinds.cluster_size.predicates.domains import Domains
    from recommender.kinds.cluster_size.predicates.namespaces import Namespaces
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape


class PodTally(ABC):
    """Counts the pods of some shapes by the values of one or more node labels."""

    demand: Requirement | None
    """A requirement that all these pods and few others satisfy; None if none is known."""

    @abstractmethod
    def keys_of(self, shape: PodShape, *, is_terminating: bool) -> tuple[str, ...]:
        """Return the labels by whose values pods of a shape are counted; none if they do not count."""

    @abstractmethod
    def change(self, info: NodeInfo, keys: tuple[str, ...], count: int) -> None:
        """Count pods that were added to a node or, with a negative count, removed from it."""


class TermTally(PodTally):
    """Counts the pods that match all of a pod's terms."""

    def __init__(self, terms: tuple[PodTerm, ...], namespaces: Namespaces, *, if_unknown: bool) -> None:
        """`if_unknown` is whether a namespace matches a selector of namespaces while their labels are unknown."""
        self.counts: dict[str, dict[str, int]] = {term.topology_key: {} for term in terms}
        self.total = 0
        self._terms = terms
        self._namespaces = namespaces
        self._if_unknown = if_unknown
        self.namespaces = _namespaces_of(terms)
        """The namespaces of the pods that can count; None for all."""
        selectors = [term.selector for term in terms if term.selector is not None]
        self.demand = next(filter(None, map(selective_requirement, selectors)), None)

    def keys_of(self, shape: PodShape, *, is_terminating: bool) -> tuple[str, ...]:
        """Return all topology keys of the terms, if the pods match. A pod that is being deleted counts, too."""
        del is_terminating
        return tuple(self.counts) if self.matches(shape) else ()

    def matches(self, shape: PodShape) -> bool:
        """Return whether all terms match the pods of a shape."""
        return all(self._is_meant(term, shape) for term in self._terms)

    def change(self, info: NodeInfo, keys: tuple[str, ...], count: int) -> None:
        """Count pods by the labels that the node has."""
        self.total += _change(self.counts, info, keys, count)

    def _is_meant(self, term: PodTerm, shape: PodShape) -> bool:
        # The namespace comes first, since it is cheaper to compare.
        if not self._namespaces.are_listed(term, shape.namespace, if_unknown=self._if_unknown):
            return False
        return term.selector is not None and term.selector.matches(shape.labels)


class SpreadTally(PodTally):
    """Counts the pods of one spread constraint by domain, and knows the smallest count of all domains."""

    def __init__(self, namespace: str, constraint: SpreadConstraint, domains: Domains) -> None:
        self.namespaces = frozenset({namespace})
        self.counts: dict[str, int] = {}
        """The count of each domain; domains without pods are absent."""
        self._selector = constraint.selector
        self.demand = None if constraint.selector is None else selective_requirement(constraint.selector)
        self._keys = (constraint.topology_key,)
        self._min_domains = constraint.min_domains
        self._domains = domains
        self._levels: dict[int, int] = {}
        """How many domains have each count."""
        self._lowest = 0
        """The smallest of the counts."""

    @property
    def minimum(self) -> int:
        """The smallest count of all domains; 0 if there are fewer domains than the constraint demands."""
        domains = len(self._domains.node_counts)
        return 0 if len(self.counts) < domains or domains < self._min_domains else self._lowest

    def keys_of(self, shape: PodShape, *, is_terminating: bool) -> tuple[str, ...]:
        """Return the topology key, if the pods count. Pods that are being deleted do not.

        As in the scheduler, a selector without requirements counts no existing pods.
        """
        selector = self._selector
        if is_terminating or selector is None or not selector.requirements or shape.namespace not in self.namespaces:
            return ()
        return self._keys if selector.matches(shape.labels) else ()

    def change(self, info: NodeInfo, keys: tuple[str, ...], count: int) -> None:
        """Count pods if the node belongs to a domain."""
        del keys
        value = self._domains.values.get(info)
        if value is None:
            return
        levels = self._levels
        before = self.counts.get(value, 0)
        after = before + count
        change_count(self.counts, value, count)
        if after:
            levels[after] = levels.get(after, 0) + 1
        if before:
            change_count(levels, before, -1)
        if self._lowest not in levels or 0 < after < self._lowest:
            self._lowest = min(levels, default=0)


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
