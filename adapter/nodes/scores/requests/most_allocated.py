"""MostAllocated: fill the nodes on which most is requested already.

The formula is that of `pkg/scheduler/framework/plugins/noderesources` of Kubernetes, in its integer arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.scores.policy_scores import PolicyScores
from adapter.nodes.scores.requests.allocation import allocation, used_percent, used_text

if TYPE_CHECKING:
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.scheduling_settings import MostAllocatedArgs
    from adapter.nodes.scores.policy_scores import Rows


def score(pod: PendingPod, columns: NodeColumns, rows: Rows, args: MostAllocatedArgs) -> PolicyScores:
    """Return the weighted mean of the requested percentages; 0 for a node that has none of the resources."""
    total = np.zeros(len(rows), dtype=np.int64)
    weights = np.zeros(len(rows), dtype=np.int64)
    parts = [(item, *allocation(pod, columns, rows, item.name)) for item in args.resources]
    for item, requested, allocatable in parts:
        total += item.weight * used_percent(requested, allocatable)
        weights += item.weight * (allocatable > 0)
    values = (total // np.maximum(weights, 1)).astype(np.float64)

    def reason(position: int) -> str:
        return "; ".join(
            used_text(item.name, int(requested[position]), int(allocatable[position]))
            for item, requested, allocatable in parts
        )

    return PolicyScores(values, reason)
