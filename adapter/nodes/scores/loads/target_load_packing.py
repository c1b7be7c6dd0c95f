"""TargetLoadPacking: fill nodes up to a target of CPU utilisation, then avoid them.

The formula is that of `pkg/trimaran/targetloadpacking` of kubernetes-sigs/scheduler-plugins. With the utilisation P in
percent that is predicted after placement and the target T, the score rises from T (at 0%) to 100 (at T), drops to T
there and falls to 0 (at 100%).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.model.loads import LoadResource
from adapter.nodes.scores.policy_scores import (
    MAX_SCORE,
    PolicyScores,
    clamp_scores,
    column_of_rows,
    load_taken,
    percent_text,
    round_half_up,
    share,
)

if TYPE_CHECKING:
    from adapter.foundation.objects.pod_requests import PodResources
    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.scheduling_settings import TargetLoadPackingArgs
    from adapter.nodes.scores.policy_scores import Rows


def score(pod: PendingPod, columns: NodeColumns, rows: Rows, args: TargetLoadPackingArgs) -> PolicyScores:
    """Return scores by predicted CPU utilisation, in percent of the capacity; NaN for nodes without CPU metrics."""
    load = load_taken(columns.mean_ratio, LoadResource.CPU, rows)
    return scores_of_load(pod, columns, rows, args, load)


def scores_of_load(
    pod: PendingPod, columns: NodeColumns, rows: Rows, args: TargetLoadPackingArgs, load: Floats
) -> PolicyScores:
    """Return the scores of nodes with these ratios of CPU in use; NaN for nodes whose ratio is not known."""
    capacity = column_of_rows(columns.capacity, "cpu", rows)
    added = predicted_cpu_milli(pod.resources, args) + columns.recent_cpu_prediction_milli.take(rows)
    percent = share(100.0 * (load * capacity + added), capacity)
    target = args.target_utilization_percent
    values = _packing_scores(percent, target)

    def reason(position: int) -> str:
        if np.isnan(load[position]):
            return "the node has no CPU metrics"
        return (
            f"CPU is at {percent_text(load[position])} and is predicted at {percent[position]:.0f}% with "
            f"{added[position]:.0f}m of this and recent pods; the target is {target:g}%"
        )

    return PolicyScores(values, reason)


def predicted_cpu_milli(resources: PodResources, args: TargetLoadPackingArgs) -> int:
    """Return the CPU in millicores that a pod is expected to use, with its overhead and without init containers.

    A container is expected to use its limit; without a limit, its request times the multiplier; without either, the
    default.
    """
    total = resources.overhead_cpu_milli
    for container in resources.containers:
        if container.cpu_limit_milli is not None:
            total += container.cpu_limit_milli
        elif container.cpu_request_milli is not None:
            total += int(container.cpu_request_milli * args.default_requests_multiplier + 0.5)
        else:
            total += args.default_requests_cpu_milli
    return total


def _packing_scores(percent: Floats, target: float) -> Floats:
    rising = (MAX_SCORE - target) * percent / target + target
    # With a target of 100, there is nothing between the target and 100.
    falling = target * (100.0 - percent) / max(100.0 - target, 1e-9)
    values = np.where(percent <= target, rising, falling)
    return clamp_scores(round_half_up(values), MAX_SCORE)
