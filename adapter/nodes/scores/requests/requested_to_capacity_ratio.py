"""RequestedToCapacityRatio: score the requested share by a configured function, such as one that packs GPUs.

The formula is that of `pkg/scheduler/framework/plugins/noderesources` of Kubernetes, in its integer arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.scores.policy_scores import PolicyScores, clamp_scores, round_half_up
from adapter.nodes.scores.requests.allocation import reason_of, resource_uses, weighted_sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.scheduling_settings import RequestedToCapacityRatioArgs
    from adapter.nodes.scores.policy_scores import Rows
    from adapter.nodes.scores.requests.allocation import Booleans, Integers, ResourceUse


def score(pod: PendingPod, columns: NodeColumns, rows: Rows, args: RequestedToCapacityRatioArgs) -> PolicyScores:
    """Return the weighted mean of the function's values, without resources whose value is 0, as Kubernetes does."""
    shape = [(point.utilization, point.score * 10) for point in args.shape]
    uses = resource_uses(pod, columns, rows, args.resources)

    def value_of(use: ResourceUse) -> tuple[Integers, Booleans]:
        # More than the allocatable amount counts as all of it.
        values = np.where(use.allocatable > 0, broken_linear(shape, use.percent), 0)
        return values, values > 0

    total, weights = weighted_sum(uses, value_of, len(rows))
    return PolicyScores(clamp_scores(round_half_up(total / weights), 100.0), reason_of(uses))


def broken_linear(shape: Sequence[tuple[int, int]], at: Integers) -> Integers:
    """Return the values at `at` of the piecewise linear function through the points, truncated to integers as in Go.

    Outside the points, the function is constant.
    """
    xs = np.array([x for x, _ in shape], dtype=np.int64)
    ys = np.array([y for _, y in shape], dtype=np.int64)
    after = np.searchsorted(xs, at, side="left").clip(0, len(xs) - 1)
    before = np.maximum(after - 1, 0)
    width = np.maximum(xs[after] - xs[before], 1)
    rise = (ys[after] - ys[before]) * (np.clip(at, xs[0], xs[-1]) - xs[before])
    # Go truncates towards 0, numpy rounds down.
    result: Integers = ys[before] + np.sign(rise) * (np.abs(rise) // width)
    return result
