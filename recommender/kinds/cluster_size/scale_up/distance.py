"""Determines how far from the optimum the new nodes can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.estimator.bound import lower_bound, lower_cost_bound
from recommender.kinds.cluster_size.estimator.equivalence import pod_groups
from recommender.kinds.cluster_size.model.answer import LowerBound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot


def optimum_bound(
    pods: Sequence[ClusterPod],
    added: Sequence[NodeInfo],
    used: Mapping[str, int],
    groups: Mapping[str, NodeGroup],
    snapshot: Snapshot,
) -> LowerBound | None:
    """Return how many new nodes there are, and how many the pending pods on them need at least; None without any.

    `used` are the new nodes by group. Costs are per hour, and None unless all groups that hold pods have a price.
    """
    if not added:
        return None
    new = {key for info in added for key in info.pods}
    helped = pod_groups([pod for pod in pods if (pod.namespace, pod.name) in new], snapshot)
    options = list(groups.values())
    prices = {name: price for name in used if (price := groups[name].price) is not None}
    cost_bound = lower_cost_bound(helped, options, snapshot) if len(prices) == len(used) else None
    return LowerBound(
        nodes=len(added),
        bound=lower_bound(helped, options, snapshot),
        cost=None if cost_bound is None else sum(prices[name] * count for name, count in used.items()),
        cost_bound=cost_bound,
    )
