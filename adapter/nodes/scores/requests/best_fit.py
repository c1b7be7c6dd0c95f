"""Best fit by requests: the replacement for policies that need metrics while no node has any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.scores.policy_scores import MAX_SCORE, PolicyScores, column_of_rows, round_half_up
from adapter.nodes.scores.requests.allocation import requested_shares

if TYPE_CHECKING:
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.scores.policy_scores import Rows


def score(pod: PendingPod, columns: NodeColumns, rows: Rows) -> PolicyScores:
    """Return 100 minus what is left after placement, in percent, averaged over CPU, memory and requested resources.

    A node on which the requests do not fit gets 0.
    """
    resources = sorted({"cpu", "memory", *(name for name, amount in pod.resources.requests.items() if amount)})
    used = requested_shares(pod, columns, rows, resources)
    fits = np.ones(len(rows), dtype=np.bool_)
    for resource in resources:
        wanted = pod.resources.requests.get(resource, 0)
        if wanted:
            fits &= column_of_rows(columns.requested, resource, rows) + wanted <= column_of_rows(
                columns.allocatable, resource, rows
            )
    values = np.where(fits, round_half_up(MAX_SCORE * used / len(resources)), 0.0)

    def reason(position: int) -> str:
        if not fits[position]:
            return "there are no metrics, and the requests of the pod do not fit"
        return (
            f"there are no metrics; {100.0 * used[position] / len(resources):.0f}% of {', '.join(resources)} would be "
            "requested"
        )

    return PolicyScores(values, reason)
