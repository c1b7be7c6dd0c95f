"""The whole answer of `recommend --shapes`: the machines, their cost and the current cost, and replacements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adapter.foundation.reports.counts import count_of
from recommender.shapes.catalogue import ShapeCatalogue, candidate
from recommender.shapes.choice import MOST_EXTENDING, MachineChoice, NoChoice, cheapest_machines, with_pods_that_fit
from recommender.shapes.consolidation import Consolidation, consolidations

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy.typing as npt

    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups
    from recommender.kinds.cluster_size.scale_down.drainability import DrainRules
    from recommender.shapes.peaks import History


@dataclass(frozen=True, slots=True)
class ShapeCount:
    """Machines of one shape."""

    shape: str
    count: int
    cost: float
    """Cost of all of these machines per hour."""


@dataclass(frozen=True, slots=True)
class ShapeReport:
    """The recommended machines, or why there are none."""

    source: str
    peaks: tuple[float, ...]
    """The times of the packed peaks, in Unix seconds."""
    most_pods: int
    """The largest number of pods that the machines hold at one of the peaks."""
    shapes: tuple[ShapeCount, ...]
    choice: MachineChoice | NoChoice
    current_nodes: int
    """The largest number of nodes that the groups have at one of the peaks."""
    current_cost: float | None
    """The highest cost per hour of the groups' nodes at one of the peaks; None if one of the nodes has no price."""
    consolidations: tuple[Consolidation, ...]
    notes: tuple[str, ...]

    @property
    def saves_ratio(self) -> float | None:
        """Return the saved share of the current cost, negative if the machines cost more; None if it is unknown."""
        if isinstance(self.choice, NoChoice) or not self.current_cost:
            return None
        return 1 - self.choice.cost / self.current_cost


def shape_report(
    history: History, catalogue: ShapeCatalogue, groups: NodeGroups, rules: DrainRules, most_shapes: int
) -> ShapeReport:
    """Return the answer; the current cost is calculated from the prices of the groups of the history's nodes."""
    candidates = [candidate(shape, history.daemons) for shape in catalogue.shapes]
    offers = best_offers(candidates)
    history = with_pods_that_fit(history, offers, candidates)
    choice = cheapest_machines(history, offers, most_shapes, candidates)
    by_name = {shape.name: shape for shape in catalogue.shapes}
    counts: Mapping[str, int] = {} if isinstance(choice, NoChoice) else choice.counts
    prices = {group.name: group.price for group in groups.groups}
    price_of = {
        node.name: price
        for peak in history.peaks
        for node in peak.nodes
        if (price := prices.get(groups.group_of.get(node.name, ""))) is not None
    }
    costs = [sum(price_of[node.name] for node in peak.nodes if node.name in price_of) for peak in history.peaks]
    unpriced = {node.name for peak in history.peaks for node in peak.nodes} - price_of.keys()
    notes = [*history.notes, *groups.problems]
    if unpriced:
        notes.append(f"{count_of(len(unpriced), 'node')} without a price: write `price` for each node group.")
    if len(offers) > MOST_EXTENDING:
        notes.append(
            f"Of {len(candidates)} shapes, the {MOST_EXTENDING} that hold a kind of pod for the least are combined; "
            "the lower bound is that of all."
        )
    return ShapeReport(
        source=history.source,
        peaks=tuple(peak.time for peak in history.peaks),
        most_pods=0 if isinstance(choice, NoChoice) else max(map(len, choice.nodes_of_peaks)),
        shapes=tuple(
            ShapeCount(name, count, count * by_name[name].price) for name, count in sorted(counts.items()) if count
        ),
        choice=choice,
        current_nodes=max((len(peak.nodes) for peak in history.peaks), default=0),
        current_cost=None if unpriced or not costs else max(costs),
        consolidations=consolidations(history.peaks[0], price_of, offers, rules) if history.peaks else (),
        notes=tuple(notes),
    )


def best_offers(groups: Sequence[NodeGroup]) -> list[NodeGroup]:
    """Return the groups that no other group can replace, in the given order. Each has a template and a price.

    A group can replace another one if its nodes have the same labels and taints, no less of any resource, and no higher
    price; of groups that are equal in all of these, the first is kept. So each pod still fits where it costs the least.
    """
    alike: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        assert group.template is not None, "candidates are made with one"
        node = group.template.node
        alike.setdefault((frozenset(node.labels.items()), frozenset(node.taints)), []).append(place)
    kept = [place for places in alike.values() for place in _best_places(groups, places)]
    return [groups[place] for place in sorted(kept)]


def _best_places(groups: Sequence[NodeGroup], places: Sequence[int]) -> list[int]:
    ranks = _ranks([groups[place] for place in places])
    order = sorted(range(len(places)), key=lambda number: (groups[places[number]].price or 0.0, -sum(ranks[number])))
    front = np.empty_like(ranks)
    kept: list[int] = []
    for number in order:
        if not bool((front[: len(kept)] >= ranks[number]).all(axis=1).any()):
            front[len(kept)] = ranks[number]
            kept.append(places[number])
    return kept


def _ranks(groups: Sequence[NodeGroup]) -> npt.NDArray[np.int64]:
    """Return the rank of each amount, by group and resource: the amounts themselves may exceed any number type."""
    offers = [{} if group.template is None else group.template.node.allocatable for group in groups]
    columns = []
    for resource in sorted({name for offer in offers for name in offer}):
        amounts = [offer[resource].nanos if resource in offer else 0 for offer in offers]
        rank = {amount: place for place, amount in enumerate(sorted(set(amounts)))}
        columns.append([rank[amount] for amount in amounts])
    return np.array(columns, dtype=np.int64).T
