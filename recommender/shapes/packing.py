"""Packs the pods of one moment on machines of some shapes, with the scheduler's own filters.

Nodes are filled by patterns. For each shape, an empty node is filled with remaining pods, and the pattern with the
highest worth for its price is used as often as possible. The worth of a pod is its dual value in the linear program
that gives the lower bound. So a pattern whose worth equals its price is part of an optimal solution of that program
(Gilmore and Gomory, "A linear programming approach to the cutting-stock problem", 1961).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.grouping import group_values
from recommender.kinds.cluster_size.estimator.estimate_model import PodGroup
from recommender.kinds.cluster_size.estimator.least_nodes import packing_demands, surely_below
from recommender.kinds.cluster_size.estimator.packing_program import ShapeDemand, optimum_of
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from recommender.kinds.cluster_size.predicates.template_nodes import add_new_node
from recommender.shapes.even_placement import placed_among_all, without_spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeTemplate
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape

MOST_ROUNDS: Final = 20
"""The limit of rounds in which machines are added for pods that find no place; after these, the packing has failed."""
_LEAST_PRICE: Final = 1e-12
_LEAST_PRICE_RATIO: Final = 1e-9


@dataclass(frozen=True, slots=True)
class PackedPods:
    """The machines of a packing, and the node of each pod."""

    counts: Mapping[str, int]
    """Number of nodes by shape, including those that existed before the packing."""
    nodes: Mapping[tuple[str, str], str]
    """The node of each pod, by namespace and name."""
    is_spread: bool = True
    """Whether the spread constraints hold with all machines present."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A set of remaining pods that fits on an empty node of a shape."""

    group: NodeGroup
    pods: tuple[tuple[PodShape, int], ...]
    worth: float

    @property
    def price(self) -> float:
        """Return the price of the node, raised to a tiny positive value if it is 0."""
        return max(self.group.price or 0.0, _LEAST_PRICE)

    def holds(self, left: Mapping[PodShape, Sequence[ClusterPod]]) -> bool:
        """Return whether the pattern holds all remaining pods."""
        return sum(number for _, number in self.pods) == sum(map(len, left.values()))


@dataclass(frozen=True, slots=True)
class PackingDemand:
    """The pods of one moment, by pod shape, and how many of each an empty machine of each shape holds."""

    snapshot: Snapshot
    pods: Mapping[PodShape, tuple[ClusterPod, ...]]
    rooms: tuple[ShapeDemand, ...]
    """For each pod shape, in the order of `pods`: how many such pods each machine holds, by the machine's index."""
    free: tuple[Mapping[str, int], ...]
    """The free amounts of each empty machine."""

    def total_requests(self) -> Mapping[str, int]:
        """Return what all pods together request, with their number."""
        requested: Counter[str] = Counter()
        for one in self.rooms:
            requested.update({name: one.count * amount for name, amount in one.requests.items()})
        return requested

    def lowest_cost(self, options: Sequence[int], prices: Sequence[float]) -> tuple[float, tuple[float, ...]] | None:
        """Return a lower bound of the cost with these machines, and the shadow price of a pod of each shape.

        Returns None if some pod fits on none of them, or if the solver gives up.
        """
        kept = {option: place for place, option in enumerate(options)}
        narrowed = [
            type(one)(one.count, one.requests, {kept[at]: room for at, room in one.rooms.items() if at in kept})
            for one in self.rooms
        ]
        if not all(one.rooms for one in narrowed):
            return None
        # The tolerances of the solver are absolute: it must not take any price for nothing, whatever the currency.
        costs = [prices[option] for option in options]
        unit = max(min(costs), _LEAST_PRICE_RATIO * max(costs)) or 1.0
        found = optimum_of(narrowed, [self.free[option] for option in options], [cost / unit for cost in costs])
        if found is None:
            return None
        return max(0.0, surely_below(found.cost)) * unit, tuple(price * unit for price in found.pod_prices)


def demand_of(pods: Iterable[ClusterPod], groups: Sequence[NodeGroup]) -> PackingDemand:
    """Return the demand of the pods on machines of these groups, each of which must have a template."""
    snapshot = Snapshot((), (), namespace_labels={})
    by_shape = group_values((snapshot.shape(pod), pod) for pod in pods)
    gathered = [PodGroup(shape, tuple(each)) for shape, each in by_shape.items()]
    rooms, free = packing_demands(gathered, [_template(group) for group in groups], snapshot)
    return PackingDemand(snapshot, {shape: tuple(each) for shape, each in by_shape.items()}, tuple(rooms), tuple(free))


def fewest_machines(requested: Mapping[str, int], free: Mapping[str, int]) -> int | None:
    """Return a lower bound of the machines that hold what pods request, each with these free amounts.

    None if machines lack a resource altogether.
    """
    fewest = 1
    for name, amount in requested.items():
        if amount:
            room = free.get(name, 0)
            if room <= 0:
                return None
            fewest = max(fewest, -(-amount // room))
    return fewest


def holds_each(demand: PackingDemand, group: NodeGroup) -> bool:
    """Return whether an empty machine of a group holds a pod of each shape; otherwise, it can hold no packing."""
    gathered = [PodGroup(shape, pods) for shape, pods in demand.pods.items()]
    rooms, _ = packing_demands(gathered, [_template(group)], demand.snapshot)
    return all(one.rooms for one in rooms)


def pack(
    demand: PackingDemand, groups: Sequence[NodeGroup], worths: Sequence[float], present: Mapping[str, int]
) -> PackedPods | None:
    """Return a packing on machines of these groups; None if a pod finds no place.

    `present` has the number of machines by group that exist already and cost nothing more. `worths` has the worth of a
    pod of each shape, in the order of the demand. The demand is unchanged afterwards.
    """
    found = _filled_in_turn(demand, groups, worths, present)
    if not any(shape.scheduling.spread for shape in demand.pods):
        return found
    prices = {group.name: group.price or 0.0 for group in groups}
    packings = (found, _spread_over_all(demand, groups, worths, present))
    known = [one for one in packings if one is not None and one.is_spread]
    return min(known, key=lambda one: sum(prices[name] * count for name, count in one.counts.items()), default=None)


def _filled_in_turn(
    demand: PackingDemand, groups: Sequence[NodeGroup], worths: Sequence[float], present: Mapping[str, int]
) -> PackedPods | None:
    mark = demand.snapshot.checkpoint()
    try:
        return _Packer(demand, groups, worths).pack(present)
    finally:
        demand.snapshot.revert(mark)


def _spread_over_all(
    demand: PackingDemand, groups: Sequence[NodeGroup], worths: Sequence[float], present: Mapping[str, int]
) -> PackedPods | None:
    """Place all pods with the machines present that they need without spread, and add some for pods without a place."""
    worth = dict(zip(demand.pods, worths, strict=True))
    bare = {shape: demand.snapshot.shape(without_spread(pods[0])) for shape, pods in demand.pods.items()}
    unspread = group_values((bare[shape], pod) for shape, pods in demand.pods.items() for pod in pods)
    bare_worth = {bare[shape]: amount for shape, amount in worth.items()}
    more = _filled_in_turn(
        replace(demand, pods={shape: tuple(pods) for shape, pods in unspread.items()}),
        groups,
        [bare_worth[shape] for shape in unspread],
        present,
    )
    counts: Counter[str] = Counter()
    for _ in range(MOST_ROUNDS):
        if more is None:
            return None
        counts += Counter(more.counts)
        placed = placed_among_all(demand.snapshot, demand.pods, groups, counts)
        if not placed.left:
            return PackedPods(Counter(placed.counts) | Counter(present), placed.nodes)
        more = _filled_in_turn(replace(demand, pods=placed.left), groups, [worth[one] for one in placed.left], {})
    return None


class _Packer:
    def __init__(self, demand: PackingDemand, groups: Sequence[NodeGroup], worths: Sequence[float]) -> None:
        self._snapshot = demand.snapshot
        self._groups = groups
        self._worth = dict(zip(demand.pods, worths, strict=True))
        self._left = {shape: list(pods) for shape, pods in demand.pods.items()}
        self._filters = {shape: PodFilter(self._snapshot, shape) for shape in self._left}
        self._nodes: list[str] = []
        self._counts: Counter[str] = Counter()

    def pack(self, present: Mapping[str, int]) -> PackedPods | None:
        """Return the packing; None if a pod finds no place."""
        spare = Counter(present)
        while self._left:
            pattern = self._best([group for group in self._groups if spare[group.name] > 0], is_paid=True)
            pattern = pattern or self._best(self._groups, is_paid=False)
            if pattern is not None:
                self._use(pattern, spare)
            elif not self._fill_present():
                return None
        nodes = {pod: node for node in self._nodes for pod in self._snapshot.nodes[node].pods}
        counts = {group.name: max(self._counts[group.name], present.get(group.name, 0)) for group in self._groups}
        is_spread = all(each.is_spread for each in self._filters.values())
        return PackedPods({name: count for name, count in counts.items() if count}, nodes, is_spread)

    def _best(self, groups: Sequence[NodeGroup], *, is_paid: bool) -> _Pattern | None:
        """Return the pattern with the most worth for its price, or the cheapest one that holds all remaining pods."""
        patterns = [pattern for group in groups if (pattern := self._pattern(group)).pods]
        if not patterns:
            return None
        best = max(patterns, key=lambda one: (one.worth / one.price, -one.price, one.group.name))
        last = min((one for one in patterns if one.holds(self._left)), key=lambda one: one.price, default=None)
        if last is None or is_paid:
            return best
        return last if best.holds(self._left) or last.price <= best.price + min(one.price for one in patterns) else best

    def _pattern(self, group: NodeGroup) -> _Pattern:
        """Fill an empty node with remaining pods in two orders, and return the pattern that is worth more."""
        mark = self._snapshot.checkpoint()
        info = add_new_node(self._snapshot, _template(group), f"{group.name}-trial")
        shares = {shape: _largest_share(shape, info.allocatable) for shape in self._left}
        found: list[_Pattern] = []
        orders = (
            sorted(shares, key=lambda shape: -shares[shape]),
            sorted(shares, key=lambda shape: -self._worth[shape] / max(shares[shape], _LEAST_PRICE)),
        )
        for order in orders:
            taken: list[tuple[PodShape, int]] = []
            for shape in order:
                room = self._filters[shape].room(info, len(self._left[shape]))
                if room:
                    self._snapshot.try_pods(shape, info, room)
                    taken.append((shape, room))
            for shape, room in taken:
                self._snapshot.try_pods(shape, info, -room)
            worth = sum(room * self._worth[shape] for shape, room in taken)
            found.append(_Pattern(group, tuple(taken), worth))
        self._snapshot.revert(mark)
        return max(found, key=lambda one: (one.worth, sum(room for _, room in one.pods)))

    def _use(self, pattern: _Pattern, spare: Counter[str]) -> None:
        """Fill nodes by a pattern as often as it applies; the filters check each node again."""
        name = pattern.group.name
        times = min(len(self._left[shape]) // number for shape, number in pattern.pods)
        if spare[name] > 0:
            times = min(times, spare[name])
        for _ in range(times):
            node = f"{name}-{self._counts[name]}"
            self._counts[name] += 1
            spare[name] -= spare[name] > 0
            info = add_new_node(self._snapshot, _template(pattern.group), node)
            self._nodes.append(node)
            is_as_planned = True
            for shape, number in pattern.pods:
                room = self._filters[shape].room(info, number)
                is_as_planned &= room == number
                for _ in range(room):
                    self._snapshot.place(self._left[shape].pop(), node)
            if not is_as_planned:
                break
        for shape, _ in pattern.pods:
            if not self._left[shape]:
                del self._left[shape]

    def _fill_present(self) -> bool:
        """Put pods that only fit beside other pods on nodes that have such pods; return whether any pod was placed."""
        infos = [self._snapshot.nodes[node] for node in self._nodes]
        is_placed = False
        for shape in list(self._left):
            while self._left[shape] and (info := self._filters[shape].first_fit(infos)) is not None:
                self._snapshot.place(self._left[shape].pop(), info.node.name)
                is_placed = True
            if not self._left[shape]:
                del self._left[shape]
        return is_placed


def _largest_share(shape: PodShape, allocatable: Mapping[str, int]) -> float:
    """Return the largest share of a resource of an empty node that a pod requests; infinite if the node has none."""
    return max(
        (
            amount / allocatable[name] if allocatable.get(name) else float("inf")
            for name, amount in shape.requests.items()
        ),
        default=0.0,
    )


def _template(group: NodeGroup) -> NodeTemplate:
    assert group.template is not None, "candidates are made with one"
    return group.template
