"""Adds the nodes of an option to the snapshot, within the limits and spread over similar groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.balancing.spread import GroupRoom, balanced, within_quotas
from recommender.kinds.cluster_size.model.answer import SizeStep
from recommender.kinds.cluster_size.scale_up.new_nodes import add_new_nodes
from recommender.kinds.cluster_size.scale_up.scale_up_state import exceeded_limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.estimator.estimate_model import Estimate, ExpansionOption
    from recommender.kinds.cluster_size.limits.quotas import Quota
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot
    from recommender.kinds.cluster_size.scale_up.existing_node_placement import Placer
    from recommender.kinds.cluster_size.scale_up.scale_up_state import SizingState


@dataclass(frozen=True, slots=True)
class Shares:
    """How many nodes each group gets, and the remaining limits."""

    nodes: Mapping[str, int]
    quotas: tuple[Quota, ...]
    steps: tuple[SizeStep, ...] = ()
    """The limits that have reduced the number of nodes."""


def shares_of(state: SizingState, option: ExpansionOption, wanted: int) -> Shares:
    """Return how the nodes of an option are spread over its group and similar ones, as limits allow.

    Without similar groups, the chosen group gets all nodes. Nodes that a limit refuses to a group are not given to
    another group.
    """
    chosen = option.group
    verdict = state.checked(chosen, wanted)
    sizes = state.sizes
    members = [state.groups[name] for name in (chosen.name, *option.similar)]
    wishes = balanced([GroupRoom(each.name, sizes[each.name], each.largest_size) for each in members], verdict.allowed)
    counts = {each.name: state.node_counts(each) for each in members}
    nodes, quotas = within_quotas(wishes, counts, state.quotas)
    if not nodes:
        # The smallest group has no room under its limits, but the chosen one has.
        nodes, quotas = within_quotas({chosen.name: min(verdict.allowed, state.room(chosen))}, counts, state.quotas)
    total = sum(nodes.values())
    detail = f"{total} of {wanted} nodes are allowed"
    limits = exceeded_limits(verdict) if total < wanted else ()
    return Shares(
        nodes,
        quotas,
        tuple(SizeStep(limit, chosen.name, sizes[chosen.name] + nodes.get(chosen.name, 0), detail) for limit in limits),
    )


def added_nodes(
    snapshot: Snapshot, state: SizingState, chosen: str, shares: Mapping[str, int]
) -> dict[str, list[NodeInfo]]:
    """Add the nodes of each group's share to the snapshot; return them by group, those of the chosen one first."""
    groups = sorted(shares, key=lambda name: name != chosen)
    return {name: add_new_nodes(snapshot, state.groups[name], shares[name]) for name in groups}


def place_estimated(
    snapshot: Snapshot, placer: Placer, added: Sequence[NodeInfo], estimated: Estimate
) -> list[ClusterPod]:
    """Place pods as in the estimate, in its order, as far as nodes were added and take them; return the other pods.

    The added nodes represent those of the estimate, in order. A node can belong to another group than that of the
    estimate, so the filters run again for each node.
    """
    opened = dict(zip((node.name for node in estimated.new_nodes), added, strict=False))
    places = {id(pod): opened.get(node.name) for node in estimated.new_nodes for pod in node.pods}
    places |= {id(pod): snapshot.nodes.get(name) for pod, name in estimated.placed_on_existing}
    left: list[ClusterPod] = []
    for pod in estimated.pods:
        info = places.get(id(pod))
        if info is None or not placer.place_if_it_fits(pod, info):
            left.append(pod)
    return left
