"""Keeps the nodes of the pods of each shape, and the counts that change with these pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.predicates.bound_pods_anti_affinity import OpponentTable
from recommender.kinds.cluster_size.predicates.domains import Domains
from recommender.kinds.cluster_size.predicates.node_info import change_count
from recommender.kinds.cluster_size.predicates.topology_counts import SpreadTally, TermTally

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from adapter.foundation.cluster.values.constraints import PodScheduling, PodTerm, SpreadConstraint
    from adapter.foundation.objects.requirements import Requirement
    from recommender.kinds.cluster_size.predicates.bound_pods_anti_affinity import TermOwners
    from recommender.kinds.cluster_size.predicates.namespaces import Namespaces
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo, PodKey
    from recommender.kinds.cluster_size.predicates.node_table import NodeTable
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.topology_counts import PodTally


@dataclass(slots=True, eq=False)
class _Alike:
    """All pods of one shape, either those that are being deleted or the others."""

    shape: PodShape
    is_terminating: bool
    nodes: dict[NodeInfo, int] = field(default_factory=dict)
    """How many of these pods each node has."""
    tallies: list[tuple[PodTally, tuple[str, ...]]] | None = None
    """The tallies with the topology keys for which each counts these pods; None if there are none, as for most
    shapes."""
    owners: TermOwners | None = None
    """The counter of these pods as owners of anti-affinity terms; None if they have no term."""

    def connect(self, tally: PodTally) -> None:
        """Let a tally count these pods, both present and later ones, if they concern it."""
        keys = tally.keys_of(self.shape, is_terminating=self.is_terminating)
        if not keys:
            return
        if self.tallies is None:
            self.tallies = []
        self.tallies.append((tally, keys))
        for info, count in self.nodes.items():
            tally.change(info, keys, count)


@dataclass(slots=True)
class _InNamespace:
    """All shapes of pods of one namespace."""

    all: list[_Alike] = field(default_factory=list)
    by_label: dict[str, dict[str, list[_Alike]]] = field(default_factory=dict)
    """The pods by key and value, for the keys that selectors have demanded."""

    def add(self, alike: _Alike) -> None:
        """Add the pods of a new shape."""
        self.all.append(alike)
        for key, values in self.by_label.items():
            _put(values, key, alike)

    def candidates(self, demand: Requirement | None) -> Iterable[_Alike]:
        """Return the shapes that may satisfy a demand for values of a label; all shapes if `demand` is None."""
        if demand is None:
            return self.all
        values = self.by_label.get(demand.key)
        if values is None:
            values = self.by_label[demand.key] = {}
            for alike in self.all:
                _put(values, demand.key, alike)
        return [alike for value in demand.values for alike in values.get(value, ())]


def _put(values: dict[str, list[_Alike]], key: str, alike: _Alike) -> None:
    value = alike.shape.labels.get(key)
    if value is not None:
        values.setdefault(value, []).append(alike)


class Census:
    """Counts the pods of each shape on each node, and passes on every change to the tallies that count the shape.

    A tally is kept once it was requested. So the cost of a change is proportional to the number of tallies that count
    the pod, and the cost of a new tally to the number of shapes in its namespaces that have the required label.
    """

    def __init__(self, nodes: NodeTable, namespaces: Namespaces) -> None:
        self.claim_uses: dict[PodKey, int] = {}
        """By namespace and name: how many pods use each PersistentVolumeClaim."""
        self.opponents = OpponentTable(namespaces)
        self._nodes = nodes
        self._namespaces = namespaces
        self._staying: dict[PodShape, _Alike] = {}
        self._terminating: dict[PodShape, _Alike] = {}
        self._by_namespace: dict[str, _InNamespace] = {}
        self._by_terms: dict[tuple[tuple[PodTerm, ...], bool], TermTally] = {}
        self._by_constraint: dict[tuple[str, SpreadConstraint, Domains], SpreadTally] = {}
        self._domains: dict[Hashable, Domains] = {}
        self._of_namespace: dict[str, list[PodTally]] = {}
        self._of_all_namespaces: list[TermTally] = []

    def change(self, shape: PodShape, info: NodeInfo, count: int, *, is_terminating: bool) -> None:
        """Count pods of a shape that were added to a node or, with a negative count, removed from it."""
        alike = (self._terminating if is_terminating else self._staying).get(shape)
        if alike is None:
            alike = self._new(shape, is_terminating=is_terminating)
        change_count(alike.nodes, info, count)
        if not shape.is_plain:
            for claim in shape.scheduling.claims:
                change_count(self.claim_uses, (shape.namespace, claim), count)
        if alike.tallies is not None:
            for tally, keys in alike.tallies:
                tally.change(info, keys, count)
        if alike.owners is not None:
            alike.owners.change(info, count)

    def add_node(self, info: NodeInfo) -> None:
        """Add a node that has no pods yet."""
        for domains in self._domains.values():
            domains.add_node(info)

    def remove_node(self, info: NodeInfo) -> None:
        """Forget a node that has no pods any more."""
        for domains in self._domains.values():
            domains.remove_node(info)

    def of_terms(self, terms: tuple[PodTerm, ...], *, if_unknown: bool) -> TermTally:
        """Return the count of the pods that match all of a pod's terms."""
        key = (terms, if_unknown)
        tally = self._by_terms.get(key)
        if tally is None:
            tally = self._by_terms[key] = TermTally(terms, self._namespaces, if_unknown=if_unknown)
            if tally.namespaces is None:
                self._of_all_namespaces.append(tally)
                for present in self._by_namespace.values():
                    self._connect(tally, present.candidates(tally.demand))
            else:
                self._connect_in_namespaces(tally, tally.namespaces)
        return tally

    def of_spread(self, shape: PodShape, constraint: SpreadConstraint) -> SpreadTally:
        """Return the count of the pods that a spread constraint of a shape selects."""
        domains = self._domains_of(shape.scheduling, constraint)
        key = (shape.namespace, constraint, domains)
        tally = self._by_constraint.get(key)
        if tally is None:
            tally = self._by_constraint[key] = SpreadTally(shape.namespace, constraint, domains)
            self._connect_in_namespaces(tally, tally.namespaces)
        return tally

    def _domains_of(self, scheduling: PodScheduling, constraint: SpreadConstraint) -> Domains:
        affinity = (scheduling.node_selector, scheduling.node_terms) if constraint.honors_node_affinity else None
        tolerations = scheduling.tolerations if constraint.honors_node_taints else None
        keys = frozenset(one.topology_key for one in scheduling.spread)
        key = (constraint.topology_key, keys, affinity, tolerations)
        domains = self._domains.get(key)
        if domains is None:
            domains = self._domains[key] = Domains(scheduling, constraint, self._nodes.values())
        return domains

    def _connect_in_namespaces(self, tally: PodTally, namespaces: frozenset[str]) -> None:
        for namespace in namespaces:
            self._of_namespace.setdefault(namespace, []).append(tally)
            present = self._by_namespace.get(namespace)
            if present is not None:
                self._connect(tally, present.candidates(tally.demand))

    def _connect(self, tally: PodTally, pods: Iterable[_Alike]) -> None:
        for alike in pods:
            alike.connect(tally)

    def _new(self, shape: PodShape, *, is_terminating: bool) -> _Alike:
        alike = _Alike(shape, is_terminating)
        (self._terminating if is_terminating else self._staying)[shape] = alike
        self._by_namespace.setdefault(shape.namespace, _InNamespace()).add(alike)
        for tally in (*self._of_namespace.get(shape.namespace, ()), *self._of_all_namespaces):
            alike.connect(tally)
        if shape.scheduling.anti_affinity:
            alike.owners = self.opponents.owners(shape.scheduling.anti_affinity)
        return alike
