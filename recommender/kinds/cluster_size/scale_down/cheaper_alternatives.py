"""Finds cheaper alternatives to the nodes that stay: several of them together, or one of them as a smaller node.

This goes beyond Cluster Autoscaler; the order and the search are those of Karpenter's consolidation. It is only advice:
no size includes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.pod_requests import CPU
from adapter.foundation.reports.counts import count_of, first_names
from recommender.kinds.cluster_size.model.answer import Advice
from recommender.kinds.cluster_size.scale_down.drainability import ignores_budgets
from recommender.kinds.cluster_size.scale_down.replacement_nodes import NodeReplacement, StayingNode
from recommender.kinds.cluster_size.scale_down.simulated_removal import Unremovable, drain_plan

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot
    from recommender.kinds.cluster_size.scale_down.disruptions import RemainingDisruptions
    from recommender.kinds.cluster_size.scale_down.drainability import DrainRules
    from recommender.kinds.cluster_size.scale_down.replacement_nodes import Replacer

MOST_NODES: Final = 100
"""The most nodes that are examined; those that save most for the least disruption come first."""
MOST_ADVICE: Final = 10
"""The most pieces of advice: a set of nodes that are removed together is one, and so is each single node."""
_PRIORITY_UNIT: Final = 2.0**25
_COST_LIMIT: Final = 10.0
_NAMED: Final = 5
_FEW: Final = 8


def eviction_cost(pod: ClusterPod) -> float:
    """Return `1 + priority / 2^25`, not below -10 and not above 10, as Karpenter rates the loss of a pod."""
    return min(max(1.0 + pod.priority / _PRIORITY_UNIT, -_COST_LIMIT), _COST_LIMIT)


def advice(nodes: Sequence[StayingNode], replacer: Replacer, disruptions: RemainingDisruptions) -> tuple[Advice, ...]:
    """Return removals that would be cheaper: at most one set of nodes together, then single nodes.

    The sets that are tried are prefixes of `nodes`.
    """
    together = _together(nodes, replacer, disruptions)
    found = [together] if together else []
    for one in nodes:
        if len(found) >= MOST_ADVICE:
            break
        if together and one.node.name in together.nodes:
            continue
        better = _replacement([one], replacer, disruptions)
        if better is not None:
            found.append(_advice("replace" if better.new_nodes else "consolidate", [one], better))
    return tuple(found)


def staying_nodes(
    situation: ClusterSituation,
    snapshot: Snapshot,
    rules: DrainRules,
    names: Collection[str],
    prices: Mapping[str, float],
) -> list[StayingNode]:
    """Return the named nodes that no pod keeps, at most `MOST_NODES` of them.

    Nodes that save most for the least disruption come first: by price over `1 + sum of positive eviction costs`;
    without prices, by CPU over the same sum.
    """
    groups = {group.name: group for group in situation.groups.groups}
    ready = {node.name for node in situation.nodes if node.ready}

    def order(info: NodeInfo) -> tuple[float, str]:
        group = situation.groups.group_of.get(info.node.name, "")
        worth = prices.get(group, 0.0) if prices else float(info.allocatable.get(CPU, 0))
        cost = 1.0 + sum(max(eviction_cost(pod), 0.0) for pod in info.pods.values())
        return -worth / cost, info.node.name

    found: list[StayingNode] = []
    for info in sorted((snapshot.nodes[name] for name in names if name in snapshot.nodes), key=order):
        group = groups.get(situation.groups.group_of.get(info.node.name, ""))
        if group is None or group.problem or group.options.zero_or_max or info.node.name not in ready:
            continue
        plan = drain_plan(info, rules)
        if not isinstance(plan, Unremovable) and not plan.awaited:
            found.append(StayingNode(info.node, group, plan))
        if len(found) >= MOST_NODES:
            break
    return found


def _together(nodes: Sequence[StayingNode], replacer: Replacer, disruptions: RemainingDisruptions) -> Advice | None:
    """Return advice to replace the largest possible prefix of at least two nodes; None if there is none.

    With few nodes, every number is tried; with many, bisection finds the largest, as in Karpenter.
    """
    if len(nodes) <= _FEW:
        for count in range(len(nodes), 1, -1):
            better = _fewer(nodes[:count], replacer, disruptions)
            if better is not None:
                return _advice("consolidate", nodes[:count], better)
        return None
    best: tuple[int, NodeReplacement] | None = None
    low, high = 2, len(nodes)
    while low <= high:
        count = (low + high) // 2
        better = _fewer(nodes[:count], replacer, disruptions)
        if better is None:
            high = count - 1
        else:
            best, low = (count, better), count + 1
    return _advice("consolidate", nodes[: best[0]], best[1]) if best else None


def _fewer(
    nodes: Sequence[StayingNode], replacer: Replacer, disruptions: RemainingDisruptions
) -> NodeReplacement | None:
    better = _replacement(nodes, replacer, disruptions)
    return better if better is not None and better.new_nodes < len(nodes) else None


def _replacement(
    nodes: Sequence[StayingNode], replacer: Replacer, disruptions: RemainingDisruptions
) -> NodeReplacement | None:
    own = [pod for one in nodes for pod in one.plan.own]
    guarded = (pod for pod in own if not ignores_budgets(pod))
    if own and (not disruptions.are_known or disruptions.refusal(guarded) is not None):
        return None
    return replacer.cheaper(nodes)


def _advice(kind: str, nodes: Sequence[StayingNode], found: NodeReplacement) -> Advice:
    names = tuple(one.node.name for one in nodes)
    those = first_names(names, _NAMED)
    new = f"{count_of(found.new_nodes, 'new node')} of {found.group}"
    instead = f"{new} instead of {those}" if found.new_nodes else f"{those} could be removed without a replacement"
    fit = "fits" if found.fitting_pods == 1 else "fit"
    places = f"{found.fitting_pods} of {'its' if len(names) == 1 else 'their'} pods {fit} on other nodes"
    rest = f", and the new ones take the other {found.other_pods}" if found.new_nodes else ""
    return Advice(kind, names, f"{instead}: {places}{rest}", found.saved_per_hour)
