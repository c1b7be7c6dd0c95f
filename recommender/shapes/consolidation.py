"""Finds nodes that other machines could replace at a lower cost: two nodes by one, or one node by one or two. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.node_groups.daemon_sets import stays_with_node
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from recommender.kinds.cluster_size.scale_down.simulated_removal import Unremovable, drain_plan
from recommender.shapes.packing import demand_of, fewest_machines, holds_each, pack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.scale_down.drainability import DrainRules
    from recommender.shapes.peaks import Peak

MOST_SHOWN: Final = 10
_MOST_NODES: Final = 24
"""The most nodes that are considered in pairs: those with the fewest pods for their price."""
_LEAST_PRICE: Final = 1e-12
_LEAST_SAVED_RATIO: Final = 1e-9
"""Savings of a smaller share are those of rounding: 0.1 + 0.2 is more than 0.3 in floats."""


@dataclass(frozen=True, slots=True)
class Consolidation:
    """Nodes that could be replaced, and the machines that would replace them."""

    nodes: tuple[str, ...]
    shape: str
    count: int
    evictions: int
    saved_per_hour: float

    @property
    def saved_per_eviction(self) -> float:
        """Return the savings per hour for each pod that must move; the whole savings if none must."""
        return self.saved_per_hour / max(1, self.evictions)


@dataclass(frozen=True, slots=True)
class _PricedNode:
    name: str
    price: float
    pods: tuple[ClusterPod, ...]


@dataclass(frozen=True, slots=True)
class _Machine:
    group: NodeGroup
    free: Mapping[str, int]
    """The free amounts of an empty one."""

    @property
    def price(self) -> float:
        return self.group.price or 0.0


def consolidations(
    peak: Peak, prices: Mapping[str, float], groups: Sequence[NodeGroup], rules: DrainRules
) -> tuple[Consolidation, ...]:
    """Return the replacements that save the most per eviction; no node is in two of them.

    `prices` has the prices of current nodes by name. Nodes with a pod that must not be moved are kept.
    """
    nodes = sorted(_movable(peak, prices, rules), key=lambda one: (len(one.pods) / one.price, one.name))
    machines = [_Machine(group, free) for group, free in zip(groups, demand_of((), groups).free, strict=True)]
    machines.sort(key=lambda one: one.price)
    found = [one for node in nodes for one in _replacements((node,), machines, 2)]
    found += [one for pair in combinations(nodes[:_MOST_NODES], 2) for one in _replacements(pair, machines, 1)]
    found.sort(key=lambda one: (-one.saved_per_eviction, one.nodes))
    taken: set[str] = set()
    chosen = []
    for one in found:
        if not taken.intersection(one.nodes):
            taken.update(one.nodes)
            chosen.append(one)
    return tuple(chosen[:MOST_SHOWN])


def _movable(peak: Peak, prices: Mapping[str, float], rules: DrainRules) -> Iterator[_PricedNode]:
    snapshot = Snapshot(peak.nodes, peak.pods)
    for name, info in snapshot.nodes.items():
        plan = drain_plan(info, rules)
        if name in prices and not isinstance(plan, Unremovable):
            pods = tuple(pod for pod in info.pods.values() if not stays_with_node(pod))
            yield _PricedNode(name, max(prices[name], _LEAST_PRICE), pods)


def _replacements(nodes: Sequence[_PricedNode], machines: Sequence[_Machine], most: int) -> Iterator[Consolidation]:
    """Yield the cheapest replacement of the nodes by at most `most` machines of one shape, if any saves something.

    Of replacements that cost the same, it is the one with the fewest machines. Only machines of which so few could
    hold the pods by their resources, and at a lower cost than the best ones before, are packed: that takes longest.
    `machines` are ordered by price.
    """
    paid = sum(node.price for node in nodes)
    pods = [pod for node in nodes for pod in node.pods]
    if not pods:
        return
    best: NodeGroup | None = None
    least = (paid * (1 - _LEAST_SAVED_RATIO), 0)
    demand = demand_of(pods, ())
    requested = demand.total_requests()
    for machine in machines:
        if machine.price >= paid:
            break
        group, price, fewest = machine.group, machine.price, fewest_machines(requested, machine.free)
        if fewest is None or fewest > most or (fewest * price, fewest) >= least or not holds_each(demand, group):
            continue
        held = pack(demand, (group,), [1.0] * len(demand.pods), {})
        count = most + 1 if held is None else held.counts[group.name]
        if count <= most and (count * price, count) < least:
            best, least = group, (count * price, count)
    if best is not None:
        yield Consolidation(tuple(node.name for node in nodes), best.name, least[1], len(pods), paid - least[0])
