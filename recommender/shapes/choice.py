"""Chooses the cheapest set of a limited number of machine shapes that holds all peaks of a history. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain, combinations, zip_longest
from math import comb
from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.template_nodes import add_new_node
from recommender.shapes.packing import PackingDemand, demand_of, pack

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.shapes.peaks import History

_MOST_COMPARED: Final = 600
"""The most sets for which all lower bounds are calculated; if there are more, sets are built shape by shape."""
_MOST_PACKED: Final = 12
"""The most sets of each size that are packed: those with the lowest bounds. So allowing more shapes never costs more.
"""
_SEEDS: Final = 8
"""The most sets that are extended in each step: those that rank best."""
MOST_EXTENDING: Final = 64
"""The most shapes by which sets are extended. In a larger catalogue, they are the shapes that hold some kind of pod at
the lowest price."""


@dataclass(frozen=True, slots=True)
class MachineChoice:
    """The recommended machines."""

    counts: Mapping[str, int]
    """Number of nodes by shape; together they hold the pods of each peak."""
    cost: float
    """Cost per hour."""
    bound: float
    """Lower bound of the hourly cost of any machines of the catalogue that hold all peaks."""
    nodes_of_peaks: tuple[Mapping[tuple[str, str], str], ...]
    """For each peak, the node of each pod."""


@dataclass(frozen=True, slots=True)
class NoChoice:
    """Why no machines can be chosen."""

    reason: str
    unplaceable: tuple[str, ...] = ()
    """Pods that fit on no machine of the catalogue, each with the reason."""


def with_pods_that_fit(history: History, groups: Sequence[NodeGroup], catalogue: Sequence[NodeGroup]) -> History:
    """Return the history with its pending pods among the kinds, but for those that fit on no machine.

    Those are left out and named in a note, as a recording leaves out pods of kinds that never had a node: a pod that
    can run nowhere must not hide what all others need. If a pod like it has a node, it counts.
    """
    demand = demand_of((*history.kinds, *history.pending), groups)
    placed = set(map(_key, history.kinds))
    strays = {
        shape: pods
        for (shape, pods), one in zip(demand.pods.items(), demand.rooms, strict=True)
        if not one.rooms and placed.isdisjoint(map(_key, pods))
    }
    left_out = {_key(pod) for pods in strays.values() for pod in pods}
    kinds = (*history.kinds, *(pod for pod in history.pending if _key(pod) not in left_out))
    if not strays:
        return replace(history, kinds=kinds, pending=())
    them = "it" if len(left_out) == 1 else "them"
    reasons = dict.fromkeys(_unplaceable_pod(demand, shape, pods, catalogue) for shape, pods in strays.items())
    note = (
        f"{count_of(len(left_out), 'pending pod')} left out, since no machine of the catalogue holds {them} and none "
        f"like {them} has a node: {'; '.join(reasons)}."
    )
    peaks = tuple(
        replace(peak, pods=tuple(pod for pod in peak.pods if _key(pod) not in left_out)) for peak in history.peaks
    )
    return replace(history, peaks=peaks, kinds=kinds, pending=(), notes=(*history.notes, note))


def _key(pod: ClusterPod) -> tuple[str, str]:
    return pod.namespace, pod.name


def cheapest_machines(
    history: History, groups: Sequence[NodeGroup], most_shapes: int, catalogue: Sequence[NodeGroup] = ()
) -> MachineChoice | NoChoice:
    """Return the cheapest machines that were found. Every pod of the history fits on one of them.

    `catalogue` has all machines if `groups` are only a part of them; it is used to explain why a pod fits on none.
    """
    every = demand_of(history.kinds, groups)
    unplaceable = tuple(dict.fromkeys(_unplaceable_pods(every, catalogue or groups)))
    if unplaceable:
        return NoChoice("pods of the history fit on no machine of the catalogue", unplaceable)
    peaks = [demand_of(peak.pods, groups) for peak in history.peaks if peak.pods]
    if not peaks:
        return NoChoice("the history has no pod that needs a machine")
    return _Search(groups, every, peaks).best(most_shapes)


def _unplaceable_pods(every: PackingDemand, groups: Sequence[NodeGroup]) -> Iterable[str]:
    """Yield the pods that fit on no machine, each with the reasons that rule out the most machines."""
    for (shape, pods), demand in zip(every.pods.items(), every.rooms, strict=True):
        if not demand.rooms:
            yield _unplaceable_pod(every, shape, pods, groups)


def _unplaceable_pod(
    every: PackingDemand, shape: PodShape, pods: Sequence[ClusterPod], groups: Sequence[NodeGroup]
) -> str:
    owner = pods[0].controller
    who = f"{shape.namespace}/{owner.name if owner is not None else pods[0].name}"
    return f"{who}: {_nearest_refusal(every, shape, groups)}"


def _nearest_refusal(every: PackingDemand, shape: PodShape, groups: Sequence[NodeGroup]) -> str:
    mark = every.snapshot.checkpoint()
    judge = PodFilter(every.snapshot, shape)
    reasons: Counter[str] = Counter()
    for number, group in enumerate(groups):
        assert group.template is not None, "candidates are made with one"
        info = add_new_node(every.snapshot, group.template, f"judged-{number}")
        reasons.update(map(str, judge.refusals(info)))
    every.snapshot.revert(mark)
    return ", ".join(f"{reason} on {count_of(number, 'shape')}" for reason, number in reasons.most_common(3))


class _Search:
    def __init__(self, groups: Sequence[NodeGroup], every: PackingDemand, peaks: Sequence[PackingDemand]) -> None:
        self._groups = groups
        self._every = every
        self._peaks = peaks
        self._prices = [group.price or 0.0 for group in groups]
        self._bounds: dict[tuple[int, ...], float | None] = {}

    def best(self, most_shapes: int) -> MachineChoice | NoChoice:
        """Return the cheapest packing of the promising sets, without those whose bound shows that they cost more."""
        bound = max(self._lower_bound(tuple(range(len(self._groups)))) or 0.0, 0.0)
        best: MachineChoice | None = None
        for options in self._promising_sets(most_shapes):
            lowest = self._lower_bound(options)
            if lowest is None or (best is not None and lowest >= best.cost):
                continue
            found = self._choice_of(options, bound)
            if found is not None and (best is None or found.cost < best.cost):
                best = found
        if best is None:
            return NoChoice(
                f"no set of {most_shapes} shapes holds every pod of the history: allow more with --max-shapes"
            )
        return best

    def _lower_bound(self, options: tuple[int, ...]) -> float | None:
        """Return a lower bound of the cost with these machines; None if some kind of pod fits on none of them."""
        if options not in self._bounds:
            self._bounds[options] = self._new_bound(options)
        return self._bounds[options]

    def _new_bound(self, options: tuple[int, ...]) -> float | None:
        if not all(any(option in one.rooms for option in options) for one in self._every.rooms):
            return None
        found = [each.lowest_cost(options, self._prices) for each in self._peaks]
        return max((one[0] for one in found if one is not None), default=0.0)

    def _promising_sets(self, most_shapes: int) -> list[tuple[int, ...]]:
        """Return the sets to pack: first the smallest ones, and of each size those with the lowest bounds, in order."""
        total = len(self._groups)
        sizes = range(1, min(most_shapes, total) + 1)
        if sum(comb(total, size) for size in sizes) <= _MOST_COMPARED:
            sets = [each for size in sizes for each in combinations(range(total), size)]
        else:
            sets = self._growing_sets(most_shapes)
        known = sorted((bound, each) for each in sets if (bound := self._lower_bound(each)) is not None)
        return [
            options
            for size in range(1, most_shapes + 1)
            for options in [each for _, each in known if len(each) == size][:_MOST_PACKED]
        ]

    def _growing_sets(self, most_shapes: int) -> list[tuple[int, ...]]:
        """Return sets built by adding one shape at a time to the sets that rank best so far."""
        total = self._extending_shapes()
        seeds: list[tuple[int, ...]] = [()]
        found: dict[tuple[int, ...], None] = {}
        for _ in range(most_shapes):
            grown = {tuple(sorted({*seed, option})) for seed in seeds for option in total if option not in seed}
            seeds = sorted(grown, key=self._rank)[:_SEEDS]
            found |= dict.fromkeys(seeds)
        return list(found)

    def _extending_shapes(self) -> list[int]:
        """Return the shapes that sets are extended by: the cheapest for each kind of pod, then the second cheapest."""
        if len(self._groups) <= MOST_EXTENDING:
            return list(range(len(self._groups)))
        by_kind = [
            sorted(one.rooms, key=lambda option: (self._prices[option] / one.rooms[option], option))
            for one in self._every.rooms
        ]
        ranked = chain.from_iterable(zip_longest(*by_kind))
        return sorted(list(dict.fromkeys(option for option in ranked if option is not None))[:MOST_EXTENDING])

    def _rank(self, options: tuple[int, ...]) -> tuple[int, float, tuple[int, ...]]:
        """Return the sort key of a set: how many kinds of pods fit on none of its machines, then its bound."""
        missing = sum(not any(option in one.rooms for option in options) for one in self._every.rooms)
        bound = self._lower_bound(options) if not missing else None
        return missing, sum(self._prices[option] for option in options) if bound is None else bound, options

    def _choice_of(self, options: tuple[int, ...], bound: float) -> MachineChoice | None:
        """Pack the peaks one after another; each first uses the machines that the earlier peaks need."""
        groups = [self._groups[option] for option in options]
        counts: Mapping[str, int] = {}
        places: list[Mapping[tuple[str, str], str]] = []
        for peak in self._peaks:
            lowest = peak.lowest_cost(options, self._prices)
            worths = lowest[1] if lowest is not None else [1.0] * len(peak.pods)
            found = pack(peak, groups, worths, counts)
            if found is None:
                return None
            counts = found.counts
            places.append(found.nodes)
        cost = sum((group.price or 0.0) * counts.get(group.name, 0) for group in groups)
        return MachineChoice(counts, cost, min(bound, cost), tuple(places))
