"""Finds fewer, smaller or cheaper nodes that could take the pods of existing nodes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.pod_requests import CPU, MEMORY
from recommender.kinds.cluster_size.model.resources import amounts_of
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.template_nodes import add_new_node
from recommender.kinds.cluster_size.scale_down.block_free_resources import requested_resources
from recommender.kinds.cluster_size.scale_down.pod_places import PodPlaces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeTemplate
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot
    from recommender.kinds.cluster_size.scale_down.simulated_removal import DrainPlan

MOST_ADVICE_CHECKS: Final = 300_000
"""The most checks of pods that advice makes against existing nodes, and as many against new ones; about one second."""

_PRICE_DIGITS: Final = 9
"""Digits of a ratio of prices that count."""


@dataclass(frozen=True, slots=True)
class StayingNode:
    """A node that stays, with the pods that would have to move."""

    node: ClusterNode
    group: NodeGroup
    plan: DrainPlan


@dataclass(frozen=True, slots=True)
class NodeReplacement:
    """A replacement for some nodes."""

    new_nodes: int
    group: str
    """The group of the new nodes; empty if the pods fit on other existing nodes."""
    fitting_pods: int
    """Pods that fit on other existing nodes."""
    other_pods: int
    """Pods that the new nodes take."""
    saved_per_hour: float | None


class Replacer:
    """Looks for replacements on a snapshot, which is unchanged after each search."""

    def __init__(
        self,
        snapshot: Snapshot,
        destinations: Sequence[str],
        groups: Sequence[NodeGroup],
        prices: Mapping[str, float],
        gone: Mapping[str, int],
    ) -> None:
        """`gone` is how many nodes of each group are removed anyway. Prices are empty unless all groups have one."""
        self._snapshot = snapshot
        self._places = PodPlaces(snapshot, destinations, MOST_ADVICE_CHECKS)
        self._prices = prices
        self._sizes = {one.name: one.target_size - len(one.deleting) - gone.get(one.name, 0) for one in groups}
        usable = [one for one in groups if one.template and not one.problem and not one.options.zero_or_max]
        self._groups = sorted(usable, key=lambda one: (prices.get(one.name, 0.0), _capacity(one), one.name))
        self._checks_left = MOST_ADVICE_CHECKS

    def cheaper(self, nodes: Sequence[StayingNode]) -> NodeReplacement | None:
        """Return a cheaper replacement that can take the pods of the nodes; None if there is none, or too much work."""
        if not self._may_go(nodes):
            return None
        pods = [(pod, self._snapshot.shape(pod)) for one in nodes for pod in one.plan.leaving_pods(self._snapshot)]
        pods.sort(key=lambda one: requested_resources(one[1]), reverse=True)
        for _, shape in pods:
            self._places.prepare(shape)
        mark = self._snapshot.checkpoint()
        self._places.begin(one.node.name for one in nodes)
        for one in nodes:
            self._snapshot.remove_node(one.node.name)
        left = [(pod, shape) for pod, shape in pods if self._places.place(pod, shape, "") is None]
        found = None if self._places.is_exhausted else self._cheapest(nodes, left, len(pods) - len(left))
        self._snapshot.revert(mark)
        self._places.roll_back()
        return found

    def _may_go(self, nodes: Sequence[StayingNode]) -> bool:
        """Return whether the groups stay at or above their smallest sizes without these nodes."""
        going = Counter(one.group.name for one in nodes)
        return all(self._sizes[one.group.name] - going[one.group.name] >= one.group.min_size for one in nodes)

    def _cheapest(
        self, nodes: Sequence[StayingNode], left: Sequence[tuple[ClusterPod, PodShape]], fitting: int
    ) -> NodeReplacement | None:
        paid = sum(self._prices.get(one.group.name, 0.0) for one in nodes)
        if not left:
            return NodeReplacement(0, "", fitting, 0, paid if self._prices else None)
        best: NodeReplacement | None = None
        for group in self._groups:
            most = self._most_new(nodes, group, paid)
            count = self._new_nodes(group, left, most) if most > 0 else None
            if count is None:
                continue
            saved = paid - count * self._prices[group.name] if self._prices else None
            if best is None or (saved or 0.0) > (best.saved_per_hour or 0.0):
                best = NodeReplacement(count, group.name, fitting, len(left), saved)
        return best

    def _most_new(self, nodes: Sequence[StayingNode], group: NodeGroup, paid: float) -> int:
        """Return how many nodes of the group may replace these: at most as many, and cheaper or smaller in total."""
        room = group.largest_size - self._sizes[group.name]
        if self._prices:
            cheaper = _affordable(paid, self._prices[group.name], len(nodes))
        else:
            mine = _capacity(group)
            owned = [_resources(one.node) for one in nodes]
            total = [sum(one[at] for one in owned) for at in range(len(mine))]
            cheaper = min((have // need for have, need in zip(total, mine, strict=True) if need), default=0)
            if [cheaper * need for need in mine] == total:
                cheaper -= 1
        return min(cheaper, room, len(nodes))

    def _new_nodes(self, group: NodeGroup, left: Sequence[tuple[ClusterPod, PodShape]], most: int) -> int | None:
        """Return how many nodes of the group hold the pods; None if `most` do not."""
        if group.template is None:
            return None
        mark = self._snapshot.checkpoint()
        opened: list[NodeInfo] = []
        filters: dict[PodShape, PodFilter] = {}
        holds = all(self._put(pod, shape, group.template, opened, filters, most) for pod, shape in left)
        self._snapshot.revert(mark)
        return len(opened) if holds else None

    def _put(
        self,
        pod: ClusterPod,
        shape: PodShape,
        template: NodeTemplate,
        opened: list[NodeInfo],
        filters: dict[PodShape, PodFilter],
        most: int,
    ) -> bool:
        judge = filters.get(shape)
        if judge is None:
            judge = filters[shape] = PodFilter(self._snapshot, shape)
        self._checks_left -= len(opened) + 1
        target = judge.first_fit(opened)
        if target is None and len(opened) < most and self._checks_left > 0:
            opened.append(add_new_node(self._snapshot, template, f"{template.node.name}-advice-{len(opened)}"))
            target = judge.first_fit(opened[-1:])
        if target is None:
            return False
        self._snapshot.place(pod, target.node.name)
        return True


def _affordable(paid: float, price: float, most: int) -> int:
    """Return how many nodes of a price together cost less than `paid`; at most `most` if they cost nothing."""
    if price <= 0:
        return most if paid > 0 else 0
    # Sums of prices are not exact: 0.1 + 0.2 is more than 0.3.
    return math.ceil(round(paid / price, _PRICE_DIGITS)) - 1


def _capacity(group: NodeGroup) -> tuple[int, int]:
    return _resources(group.template.node) if group.template else (0, 0)


def _resources(node: ClusterNode) -> tuple[int, int]:
    """Return the CPU in millicores and the memory in bytes that a node offers."""
    offered = amounts_of(node.allocatable)
    return offered.get(CPU, 0), offered.get(MEMORY, 0)
