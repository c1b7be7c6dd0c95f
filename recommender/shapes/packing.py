"""Packs the pods of a moment on machines of some shapes, each judged by the scheduler's own filters.

Nodes are filled by patterns. For each shape, an empty node is filled with remaining pods, and the pattern with the
highest worth for its price is used as often as possible. The worth of a pod is its dual value in the linear program of
the lower bound, so that a pattern that is worth its whole price is one of an optimal packing (Gilmore and Gomory, "A
linear programming approach to the cutting-stock problem", 1961).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.estimator.estimate_model import PodGroup
from recommender.kinds.cluster_size.estimator.least_nodes import packing_demands, surely_below
from recommender.kinds.cluster_size.estimator.packing_program import solved
from recommender.kinds.cluster_size.estimator.template_nodes import add_new_node
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.estimator.packing_program import ShapeDemand
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeTemplate
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape

_LEAST_PRICE: Final = 1e-12


@dataclass(frozen=True, slots=True)
class PackedPods:
    """Machines, and where each pod is."""

    counts: Mapping[str, int]
    """Nodes by shape, including former ones."""
    nodes: Mapping[tuple[str, str], str]
    """The node of each pod, by namespace and name."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """The remaining pods that an empty node of a shape holds."""

    group: NodeGroup
    pods: tuple[tuple[PodShape, int], ...]
    worth: float

    @property
    def price(self) -> float:
        """Return the price, which is above 0."""
        return max(self.group.price or 0.0, _LEAST_PRICE)

    def holds(self, left: Mapping[PodShape, Sequence[ClusterPod]]) -> bool:
        """Return whether it holds everything that is left."""
        return sum(number for _, number in self.pods) == sum(map(len, left.values()))


@dataclass(frozen=True, slots=True)
class PackingDemand:
    """The pods of a moment, by shape, and how many of them an empty machine of each shape holds."""

    snapshot: Snapshot
    pods: Mapping[PodShape, tuple[ClusterPod, ...]]
    rooms: tuple[ShapeDemand, ...]
    """How many pods each machine holds, in the order of the pods, by index of the machine."""
    free: tuple[Mapping[str, int], ...]
    """Free amounts by machine."""

    def lowest_cost(self, options: Sequence[int], prices: Sequence[float]) -> tuple[float, tuple[float, ...]] | None:
        """Return a lower bound of the cost on these machines, and the shadow price of a pod of each shape.

        None if a pod fits on none of them, or the solver gives up.
        """
        kept = {option: place for place, option in enumerate(options)}
        narrowed = [
            type(one)(one.count, one.requests, {kept[at]: room for at, room in one.rooms.items() if at in kept})
            for one in self.rooms
        ]
        if not all(one.rooms for one in narrowed):
            return None
        found = solved(narrowed, [self.free[option] for option in options], [prices[option] for option in options])
        return None if found is None else (max(0.0, surely_below(found.cost)), found.pod_prices)


def demand_of(pods: Iterable[ClusterPod], groups: Sequence[NodeGroup]) -> PackingDemand:
    """Return the demand of pods; all groups have a template."""
    snapshot = Snapshot((), (), namespace_labels={})
    by_shape: dict[PodShape, list[ClusterPod]] = {}
    for pod in pods:
        by_shape.setdefault(snapshot.shape(pod), []).append(pod)
    gathered = [PodGroup(shape, tuple(each)) for shape, each in by_shape.items()]
    rooms, free = packing_demands(gathered, [_template(group) for group in groups], snapshot)
    return PackingDemand(snapshot, {shape: tuple(each) for shape, each in by_shape.items()}, tuple(rooms), tuple(free))


def packed(
    demand: PackingDemand, groups: Sequence[NodeGroup], worths: Sequence[float], present: Mapping[str, int]
) -> PackedPods | None:
    """Return a packing on machines of these groups, some of which exist and cost nothing more.

    None if a pod finds no place. `worths` are by shape of pods, in the order of the demand. The demand is unchanged
    afterwards.
    """
    mark = demand.snapshot.checkpoint()
    try:
        return _Packer(demand, groups, worths).packed(present)
    finally:
        demand.snapshot.revert(mark)


class _Packer:
    def __init__(self, demand: PackingDemand, groups: Sequence[NodeGroup], worths: Sequence[float]) -> None:
        self._snapshot = demand.snapshot
        self._groups = groups
        self._worth = dict(zip(demand.pods, worths, strict=True))
        self._left = {shape: list(pods) for shape, pods in demand.pods.items()}
        self._filters = {shape: PodFilter(self._snapshot, shape) for shape in self._left}
        self._nodes: list[str] = []
        self._counts: Counter[str] = Counter()

    def packed(self, present: Mapping[str, int]) -> PackedPods | None:
        """Return the packing."""
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
        return PackedPods({name: count for name, count in counts.items() if count}, nodes)

    def _best(self, groups: Sequence[NodeGroup], *, is_paid: bool) -> _Pattern | None:
        """Return the pattern with the highest worth for its price; a machine that holds the rest ends the search."""
        patterns = [pattern for group in groups if (pattern := self._pattern(group)).pods]
        if not patterns:
            return None
        best = max(patterns, key=lambda one: (one.worth / one.price, -one.price, one.group.name))
        last = min((one for one in patterns if one.holds(self._left)), key=lambda one: one.price, default=None)
        if last is None or is_paid:
            return best
        return last if best.holds(self._left) or last.price <= best.price + min(one.price for one in patterns) else best

    def _pattern(self, group: NodeGroup) -> _Pattern:
        """Fill an empty node in two orders, and return the better one."""
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
        """Fill nodes by a pattern as long as it applies; the filters judge each node again."""
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
        """Put pods that only fit beside other pods on nodes with such pods; return whether there were any."""
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
    """Return the largest share of an empty node that a pod requests; infinite for a resource that the node lacks."""
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
