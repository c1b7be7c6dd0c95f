"""The anti-affinity terms of pods that have a node, as they apply to pods that are to be placed.

Pods with equal terms count together, and each different term is evaluated once for a shape. The domains that the
matching terms refuse are kept as counts, in one object for all shapes that the same terms match.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from recommender.kinds.cluster_size.predicates.node_info import change_count
from recommender.kinds.cluster_size.predicates.selector_index import SelectorIndex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.constraints import PodTerm
    from recommender.kinds.cluster_size.predicates.namespaces import Namespaces
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape

_Terms: TypeAlias = "tuple[PodTerm, ...]"


@dataclass(slots=True, eq=False)
class RefusedDomains:
    """The domains that contain pods with certain terms."""

    counts: defaultdict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    """How many different owners of terms are in each domain, by topology key and value."""
    total: int = 0

    def change(self, key: str, value: str, count: int) -> None:
        """Count an owner of terms that was added to a domain or, with a negative count, removed from it."""
        change_count(self.counts[key], value, count)
        self.total += count

    def refuse(self, labels: Mapping[str, str]) -> bool:
        """Return whether a node with these labels is in one of the domains."""
        return self.total > 0 and any(labels.get(key) in values for key, values in self.counts.items())


@dataclass(slots=True, eq=False)
class TermOwners:
    """All pods that have the same terms, and where they are."""

    counts: dict[str, dict[str, int]]
    """How many pods have the terms, by topology key and value."""
    watchers: dict[str, list[RefusedDomains]]
    """The objects that count these pods, by topology key."""

    def change(self, info: NodeInfo, count: int) -> None:
        """Count pods that were added to a node or, with a negative count, removed from it."""
        labels = info.node.labels
        for key, values in self.counts.items():
            value = labels.get(key)
            if value is None:
                continue
            before = value in values
            change_count(values, value, count)
            after = value in values
            if before is not after:
                for watcher in self.watchers[key]:
                    watcher.change(key, value, 1 if after else -1)

    def watch(self, key: str, watcher: RefusedDomains) -> None:
        """Let a watcher count these pods by a topology key from now on, including the current ones."""
        self.watchers[key].append(watcher)
        for value in self.counts[key]:
            watcher.change(key, value, 1)


@dataclass(slots=True, eq=False)
class Opponents:
    """The nodes from which the anti-affinity terms of other pods exclude a shape."""

    shape: PodShape
    known: RefusedDomains
    """The domains refused by the terms that existed when the shape was first requested; shared with other shapes that
    the same terms match."""
    later: RefusedDomains = field(default_factory=RefusedDomains)

    @property
    def exist(self) -> bool:
        """Whether the term of any pod excludes the shape from a domain."""
        return self.known.total > 0 or self.later.total > 0

    @property
    def label_keys(self) -> frozenset[str]:
        """The topology keys of the terms that the pods had so far."""
        return frozenset((*self.known.counts, *self.later.counts))

    def refuse(self, labels: Mapping[str, str]) -> bool:
        """Return whether a node with these labels is in a domain from which another pod's term excludes the shape."""
        return self.known.refuse(labels) or self.later.refuse(labels)


@dataclass(frozen=True, slots=True, eq=False)
class _OwnedTerm:
    """A term, with all pods that have it."""

    term: PodTerm
    owners: list[TermOwners]


class OpponentTable:
    """All anti-affinity terms of the pods that have a node."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._owners: dict[_Terms, TermOwners] = {}
        self._terms: dict[PodTerm, _OwnedTerm] = {}
        self._index: SelectorIndex[_OwnedTerm] = SelectorIndex()
        self._asked: dict[PodShape, Opponents] = {}
        self._asked_in: defaultdict[str, list[Opponents]] = defaultdict(list)
        self._known: dict[frozenset[tuple[int, str]], RefusedDomains] = {}

    def owners(self, terms: _Terms) -> TermOwners:
        """Return the counter of the pods that have these terms."""
        found = self._owners.get(terms)
        if found is None:
            keys = dict.fromkeys(term.topology_key for term in terms)
            found = self._owners[terms] = TermOwners({key: {} for key in keys}, {key: [] for key in keys})
            matched: dict[tuple[PodShape, str], Opponents] = {}
            for term in dict.fromkeys(terms):
                self._add(term, found)
                for opponents in self._asked_by(term):
                    matched[opponents.shape, term.topology_key] = opponents
            for (_, key), opponents in matched.items():
                found.watch(key, opponents.later)
        return found

    def against(self, shape: PodShape) -> Opponents:
        """Return the nodes from which other pods' terms exclude a shape. The result follows all later changes."""
        found = self._asked.get(shape)
        if found is None:
            found = self._asked[shape] = Opponents(shape, self._refused_domains(shape))
            self._asked_in[shape.namespace].append(found)
        return found

    def _refused_domains(self, shape: PodShape) -> RefusedDomains:
        matched: dict[tuple[int, str], TermOwners] = {}
        for one in self._index.candidates(shape.namespace, shape.labels):
            if self._is_meant(one.term, shape):
                key = one.term.topology_key
                for owners in one.owners:
                    matched[id(owners), key] = owners
        alike = frozenset(matched)
        refused = self._known.get(alike)
        if refused is None:
            refused = self._known[alike] = RefusedDomains()
            for (_, topology_key), owners in matched.items():
                owners.watch(topology_key, refused)
        return refused

    def _add(self, term: PodTerm, owners: TermOwners) -> None:
        known = self._terms.get(term)
        if known is None:
            known = self._terms[term] = _OwnedTerm(term, [])
            if term.selector is not None:
                self._index.add(known, term.selector, term.namespaces if term.namespace_selector is None else None)
        known.owners.append(owners)

    def _asked_by(self, term: PodTerm) -> list[Opponents]:
        """Return the earlier results of `against` for shapes that a term matches."""
        spaces = self._asked_in if term.namespace_selector is not None else term.namespaces
        asked = (one for space in tuple(spaces) for one in self._asked_in.get(space, ()))
        return [one for one in asked if self._is_meant(term, one.shape)]

    def _is_meant(self, term: PodTerm, shape: PodShape) -> bool:
        # The namespace comes first, since it is cheaper to compare.
        if not self._namespaces.are_selected(term, shape.namespace):
            return False
        return term.selector is not None and term.selector.matches(shape.labels)
