"""LoadVariationRiskBalancing: prefer nodes whose load is low and steady.

The formula is that of `pkg/trimaran/loadvariationriskbalancing` of kubernetes-sigs/scheduler-plugins, over any measured
resource: risk = (mean + deviation) / 2, and the resource with the highest risk decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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
)

if TYPE_CHECKING:
    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.scheduling_settings import LoadVariationRiskBalancingArgs
    from adapter.nodes.scores.policy_scores import Rows

_REQUESTED: Final = frozenset({LoadResource.CPU, LoadResource.MEMORY})
"""Resources that pods request under the same name. For GPUs, the pod to be placed says how many; pods do not request
the other resources."""


@dataclass(frozen=True, slots=True, eq=False)
class ResourceStats:
    """The load of one resource on some nodes, and the requests to add to it."""

    mean_ratio: Floats
    """Mean ratio; NaN if unknown."""
    std_ratio: Floats
    requested: Floats | float
    """Requested amount in the unit of the capacity."""
    capacity: Floats


def score(pod: PendingPod, columns: NodeColumns, rows: Rows, args: LoadVariationRiskBalancingArgs) -> PolicyScores:
    """Return 100 minus the highest risk over the listed resources that have metrics; NaN for nodes without any."""
    stats = {resource: resource_stats(pod, columns, rows, resource) for resource in args.resources}
    values = np.full(len(rows), np.nan)
    for resource in args.resources:
        values = np.fmin(values, risk_score(stats[resource], args.safe_variance_margin, args.safe_variance_sensitivity))
    values = round_half_up(values)

    def reason(position: int) -> str:
        if np.isnan(values[position]):
            return f"the node has no metrics of {', '.join(args.resources)}"
        return "; ".join(_text(resource, stats[resource], position) for resource in args.resources)

    return PolicyScores(values, reason)


def resource_stats(pod: PendingPod, columns: NodeColumns, rows: Rows, resource: LoadResource) -> ResourceStats:
    """Return the load of a resource and what this pod and recent ones add to it."""
    requested: Floats | float = 0.0
    if resource in _REQUESTED:
        requested = column_of_rows(columns.recent_requests, resource, rows) + max(
            0, pod.resources.requests.get(resource, 0)
        )
        capacity = column_of_rows(columns.allocatable, resource, rows)
    elif resource is LoadResource.GPU:
        requested = column_of_rows(columns.recent_requests, resource, rows) + pod.gpu_count * pod.gpu_milli / 1000.0
        capacity = np.array([len(columns.gpu_left_milli[row]) for row in rows.tolist()], dtype=np.float64)
        if not pod.gpu_count:
            # A node without GPUs lacks nothing that the pod needs.
            capacity = np.maximum(capacity, 1.0)
    else:
        capacity = np.ones(len(rows))
    mean = load_taken(columns.mean_ratio, resource, rows)
    return ResourceStats(mean, load_taken(columns.std_ratio, resource, rows), requested, capacity)


def mean_and_deviation(stats: ResourceStats) -> tuple[Floats, Floats]:
    """Return mean and deviation as ratios of the capacity, 0..1, with the request added to the mean.

    An unknown deviation counts as 0, as in the plugin; an unknown mean is NaN.
    """
    capacity = np.where(stats.capacity > 0.0, stats.capacity, 1.0)
    used = clamp_scores(stats.mean_ratio, 1.0) * capacity
    # `fmax` takes the 0 if the deviation is unknown.
    deviation = np.minimum(np.fmax(stats.std_ratio, 0.0), 1.0)
    return clamp_scores((used + stats.requested) / capacity, 1.0), deviation


def risk_score(stats: ResourceStats, margin: float, sensitivity: float) -> Floats:
    """Return `(1 - (mean + deviation) / 2) * 100`, not rounded: 0 without capacity, NaN without metrics.

    The deviation is first raised to the power 1 / sensitivity, unless that is negative, and multiplied by the margin.
    """
    mean, deviation = mean_and_deviation(stats)
    if sensitivity >= 0.0 and sensitivity != 1.0:
        deviation = np.power(deviation, 1.0 / sensitivity if sensitivity else math.inf)
    risk = (mean + clamp_scores(margin * deviation, 1.0)) / 2.0
    values = (1.0 - risk) * MAX_SCORE
    if stats.capacity.all():
        return values
    return values * (stats.capacity > 0.0)


def _text(resource: LoadResource, stats: ResourceStats, position: int) -> str:
    if np.isnan(stats.mean_ratio[position]):
        return f"{resource} is not measured"
    mean, deviation = mean_and_deviation(stats)
    is_requested = resource in _REQUESTED or resource is LoadResource.GPU
    added = " with the requests of this and recent pods" if is_requested else ""
    return f"{resource} is at {percent_text(mean[position])}{added} and deviates by {percent_text(deviation[position])}"
