"""daily-peaks: avoid nodes that are busy, or that were busy within the last hour or day.

The formula is that of gocrane/crane-scheduler (`pkg/plugins/dynamic/stats.go`): the weighted mean of the free share,
over three numbers: the average of the last five minutes, and the largest such average within an hour and a day. So a
node that is quiet at night does not get pods that it cannot bear by day. Two things differ, because they are wrong
there: a missing number counts as the largest of the shorter windows instead of as full use, and the requests of
recently bound pods are added to the use instead of a fixed penalty for their number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.model.usage import USAGE_KINDS, UsageName
from adapter.nodes.scores.policy_scores import (
    MAX_SCORE,
    PolicyScores,
    clamp_scores,
    column_of_rows,
    load_taken,
    percent_text,
    round_half_up,
    share,
    usage_source,
)

if TYPE_CHECKING:
    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.scheduling_settings import DailyPeaksArgs
    from adapter.nodes.scores.policy_scores import Rows


def score(pod: PendingPod, columns: NodeColumns, rows: Rows, args: DailyPeaksArgs) -> PolicyScores:
    """Return 100 times the weighted mean of the share that stays free with the pod; NaN without any number."""
    free = np.zeros(len(rows))
    weights = np.zeros(len(rows))
    used = {name: _use(pod, columns, rows, name) for name in args.weights}
    for name, weight in args.weights.items():
        is_known = ~np.isnan(used[name])
        free += np.where(is_known, weight * (1.0 - clamp_scores(used[name], 1.0)), 0.0)
        weights += weight * is_known
    shares = np.divide(free, weights, out=np.full(len(rows), np.nan), where=weights > 0.0)
    values = round_half_up(MAX_SCORE * shares)

    def reason(position: int) -> str:
        if np.isnan(values[position]):
            return "the node has no metrics of CPU and memory"
        known = (_text(columns, rows[position], name, use[position]) for name, use in used.items())
        return f"{', '.join(known)}, each with the requests of this and recent pods"

    return PolicyScores(values, reason)


def _use(pod: PendingPod, columns: NodeColumns, rows: Rows, name: UsageName) -> Floats:
    resource = USAGE_KINDS[name].resource
    added = column_of_rows(columns.recent_usage_requests, resource, rows) + max(
        0, pod.resources.requests.get(resource, 0)
    )
    return load_taken(columns.usage_ratio, name, rows) + share(
        added, column_of_rows(columns.allocatable, resource, rows)
    )


def _text(columns: NodeColumns, row: int, name: UsageName, ratio: float) -> str:
    """Return the use and its source, such as `cpu 5m average 40% in place of cpu 1d peak of five minutes`."""
    kind = USAGE_KINDS[name]
    source = USAGE_KINDS[usage_source(columns, name, row)]
    return f"{source} {percent_text(ratio)}" + ("" if source == kind else f" in place of {kind}")
