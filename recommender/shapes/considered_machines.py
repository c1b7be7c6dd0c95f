"""Selects the machines of a catalogue that no other machine can replace at the same or a lower price. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy.typing as npt

    from recommender.kinds.cluster_size.model.groups import NodeGroup


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
    kept = [place for places in alike.values() for place in _kept(groups, places)]
    return [groups[place] for place in sorted(kept)]


def _kept(groups: Sequence[NodeGroup], places: Sequence[int]) -> list[int]:
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
