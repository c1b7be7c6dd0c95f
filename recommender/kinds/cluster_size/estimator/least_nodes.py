"""Determines the least number of nodes needed and their least cost, for any mix of groups."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.estimator.binpacking import is_passing
from recommender.kinds.cluster_size.estimator.packing_program import POD_COUNT, ShapeDemand, least_cost
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.template_nodes import add_new_node, free_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from recommender.kinds.cluster_size.estimator.estimate_model import PodGroup
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeTemplate
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot

_TOLERANCE: Final = 1e-6
"""The tolerance of the solver, relative to the result."""


def lower_bound(groups: Sequence[PodGroup], options: Sequence[NodeGroup], snapshot: Snapshot) -> int:
    """Return a lower bound of the number of new nodes for any mix of the options, if all pods are to be on new nodes.

    Pods that no option holds and the sizes of the groups are ignored: neither makes the bound too large. The result is
    0 if the solver gives up. The snapshot is unchanged afterwards.
    """
    templates = _templates(options)
    demands, free = packing_demands(groups, templates, snapshot)
    found = least_cost(demands, free, [1.0] * len(templates))
    return 0 if found is None else math.ceil(surely_below(found))


def lower_cost_bound(groups: Sequence[PodGroup], options: Sequence[NodeGroup], snapshot: Snapshot) -> float | None:
    """Return a lower bound of the hourly cost of new nodes.

    None unless every option with a template has a price, and if the solver gives up.
    """
    usable = [option for option in options if option.template is not None]
    prices = [option.price for option in usable if option.price is not None]
    if not prices or len(prices) < len(usable):
        return None
    demands, free = packing_demands(groups, _templates(usable), snapshot)
    found = least_cost(demands, free, prices)
    return None if found is None else max(0.0, surely_below(found))


def _templates(options: Iterable[NodeGroup]) -> list[NodeTemplate]:
    return [option.template for option in options if option.template is not None]


def packing_demands(
    groups: Sequence[PodGroup], templates: Sequence[NodeTemplate], snapshot: Snapshot
) -> tuple[list[ShapeDemand], list[dict[str, int]]]:
    """Return the demand of each shape, in the order of the groups, and the resources of an empty node of each template.

    The snapshot is unchanged afterwards.
    """
    counts: Counter[PodShape] = Counter()
    for group in groups:
        counts[group.shape] += len(group.pods)
    mark = snapshot.checkpoint()
    try:
        names = free_names(snapshot, "bound")
        infos = [add_new_node(snapshot, template, next(names)) for template in templates]
        free = [_free(info) for info in infos]
        demands = []
        for shape, count in counts.items():
            judge = PodFilter(snapshot, shape)
            requests = {**shape.requests, POD_COUNT: 1}
            found = (_room(judge, shape, info, _whole(requests, free[place])) for place, info in enumerate(infos))
            demands.append(ShapeDemand(count, requests, {place: room for place, room in enumerate(found) if room}))
        return demands, free
    finally:
        snapshot.revert(mark)


def _free(info: NodeInfo) -> dict[str, int]:
    free = {resource: amount - info.requested.get(resource, 0) for resource, amount in info.allocatable.items()}
    return free | {POD_COUNT: info.allocatable.get(POD_COUNT, 0) - len(info.pods)}


def _whole(requests: Mapping[str, int], free: Mapping[str, int]) -> int:
    """Return how many pods an empty node holds if only resources are considered."""
    return max(0, min(free.get(resource, 0) // request for resource, request in requests.items()))


def _room(judge: PodFilter, shape: PodShape, info: NodeInfo, whole: int) -> int:
    """Return the most pods of a shape that a node can ever hold."""
    if judge.refuses_for_good(info):
        return 0
    # If other pods are the reason, they may be elsewhere in the best answer; the snapshot may hold this very pod.
    return whole if is_passing(shape) or not judge.fits(info) else judge.room(info, whole)


def surely_below(found: float) -> float:
    """Return a value that is safely below the solver's result, since the solver calculates in floats."""
    return found - _TOLERANCE * max(1.0, found)
