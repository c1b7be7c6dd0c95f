"""MostAllocated: fill the nodes on which most is requested already.

The formula is that of `pkg/scheduler/framework/plugins/noderesources` of Kubernetes, in its integer arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.scores.policy_scores import PolicyScores
from adapter.nodes.scores.requests.allocation import reason_of, resource_uses, weighted_sum

if TYPE_CHECKING:
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.scheduling_settings import MostAllocatedArgs
    from adapter.nodes.scores.policy_scores import Rows


def score(pod: PendingPod, columns: NodeColumns, rows: Rows, args: MostAllocatedArgs) -> PolicyScores:
    """Return the weighted mean of the requested percentages; 0 for a node that has none of the resources."""
    uses = resource_uses(pod, columns, rows, args.resources)
    total, weights = weighted_sum(uses, lambda use: (use.percent, use.allocatable > 0), len(rows))
    return PolicyScores((total // weights).astype(np.float64), reason_of(uses))
