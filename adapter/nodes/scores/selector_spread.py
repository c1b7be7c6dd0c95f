"""SelectorSpread: spread the pods of one Service or controller over nodes, and over zones if nodes have them.

The formula is that of `pkg/scheduler/framework/plugins/selectorspread` of Kubernetes up to 1.27: two thirds for the
zone, one third for the node.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.objects.selectors import parse_selector
from adapter.nodes.scores.policy_scores import MAX_SCORE, PolicyScores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.scheduling_settings import SelectorSpreadArgs
    from adapter.nodes.scores.policy_scores import Rows

_ZONE_WEIGHT: Final = 2.0 / 3.0
_NODE_WEIGHT: Final = 1.0 - 2.0 / 3.0
"""This is not 1 / 3, which is smaller by one unit in the last place, so that 100 would be truncated to 99."""


def score(
    pod: PendingPod,
    columns: NodeColumns,
    rows: Rows,
    _args: SelectorSpreadArgs,
    pods_by_namespace: Mapping[str, Sequence[ClusterPod]],
) -> PolicyScores:
    """Return scores by the number of pods of the same owner, normalised over the nodes of the request.

    A pod with topologySpreadConstraints of its own gets 0 everywhere: those constraints decide. The cost is one look-up
    for each pod in the namespace, and one match for each set of labels that pods share.
    """
    if pod.has_spread_constraints:
        return PolicyScores(np.zeros(len(rows)), lambda _: "the pod has topologySpreadConstraints of its own")
    counted = _counts(pod, pods_by_namespace)
    counts = np.array([counted[columns.names[row]] for row in rows.tolist()], dtype=np.float64)
    zones = columns.zone.take(rows)
    values = spread_scores(counts, zones)

    def reason(position: int) -> str:
        if not pod.owner_selector:
            return "no Service or controller selects the pod"
        text = f"{counts[position]:.0f} pods of the same owner run on the node, at most {counts.max():.0f} on any"
        if zones[position] < 0:
            return text
        return f"{text}; {counts[zones == zones[position]].sum():.0f} run in its zone"

    return PolicyScores(values, reason)


def spread_scores(counts: Floats, zones: np.ndarray[tuple[int, ...], np.dtype[np.int32]]) -> Floats:
    """Return scores of 0..100, truncated; `zones` are numbers, negative for a node without a zone."""
    values = _least(counts)
    zoned = zones >= 0
    if zoned.any():
        _, positions = np.unique(zones[zoned], return_inverse=True)
        in_zone = np.bincount(positions, weights=counts[zoned]).astype(np.float64)
        by_zone = _least(in_zone).take(positions)
        values[zoned] = values[zoned] * _NODE_WEIGHT + _ZONE_WEIGHT * by_zone
    truncated: Floats = np.trunc(values)
    return truncated


def _least(counts: Floats) -> Floats:
    most = counts.max(initial=0.0)
    if most == 0.0:
        return np.full(len(counts), MAX_SCORE)
    result: Floats = MAX_SCORE * ((most - counts) / most)
    return result


def _counts(pod: PendingPod, pods_by_namespace: Mapping[str, Sequence[ClusterPod]]) -> Counter[str]:
    """Return how many pods on each node the selector matches, without those that are terminating or have ended."""
    if not pod.owner_selector:
        return Counter()
    selector = parse_selector(pod.owner_selector)
    # Pods of one controller share the object that holds their labels.
    matching: dict[int, bool] = {}
    nodes: list[str] = []
    for other in pods_by_namespace.get(pod.namespace, ()):
        key = id(other.labels)
        is_matched = matching.get(key)
        if is_matched is None:
            is_matched = matching[key] = selector.matches(other.labels)
        if is_matched and not (other.is_terminating or other.has_ended):
            nodes.append(other.node)
    return Counter(nodes)
