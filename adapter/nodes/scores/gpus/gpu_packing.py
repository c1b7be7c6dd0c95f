"""gpu-packing: a perfect fit is best, then the node with the least left.

Nodes are ordered by GPUs first: how many free ones the pod would open, what it would leave of the GPUs that it takes,
and how many whole ones would stay free. Of nodes that are equal in these, the one on which the pod would leave less CPU
and memory comes first. The scores of a request's nodes are distributed from 100 down, since the scheduler reads
integers from 0 to 10; so the best node has an integer to itself as long as there is one to spare.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from adapter.foundation.reports.counts import count_of
from adapter.nodes.scores.gpus.levels import level_scores
from adapter.nodes.scores.policy_scores import PolicyScores
from adapter.nodes.scores.requests.allocation import requested_shares

if TYPE_CHECKING:
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.scheduling_settings import GpuPackingArgs
    from adapter.nodes.scores.policy_scores import Rows

_WHOLE_MILLI: Final = 1000

Waste: TypeAlias = tuple[int, int, int]
"""The waste on a node: free GPUs that are opened, thousandths left of the GPUs that are taken, free GPUs left."""


def score(pod: PendingPod, columns: NodeColumns, rows: Rows, _args: GpuPackingArgs) -> PolicyScores:
    """Return scores by what the pod would leave; 0 for a node without the GPUs, and for a pod without GPUs."""
    if not (pod.gpu_count and pod.gpu_milli):
        return PolicyScores(np.zeros(len(rows)), lambda _: "the pod requests no GPU")
    left = [columns.gpu_left_milli[row] for row in rows.tolist()]
    by_state = {state: waste(state, pod.gpu_count, pod.gpu_milli) for state in set(left)}
    wastes = [by_state[state] for state in left]
    order = {found: place for place, found in enumerate(sorted({one for one in wastes if one is not None}))}
    levels = np.array([-1 if one is None else order[one] for one in wastes], dtype=np.int64)

    def reason(position: int) -> str:
        found = wastes[position]
        if found is None:
            return f"the node has no room for {count_of(pod.gpu_count, 'GPU')} with {pod.gpu_milli} of {_WHOLE_MILLI}"
        free = sum(milli == _WHOLE_MILLI for milli in left[position])
        opened, _, still_free = found
        return (
            f"{free} of {len(left[position])} GPUs are free, the pod would take {opened} of these and leave"
            f" {still_free} free"
        )

    used = requested_shares(pod, columns, rows, ("cpu", "memory"))
    return PolicyScores(level_scores(levels, len(order), used), reason)


def waste(left_milli: tuple[int, ...], count: int, milli: int) -> Waste | None:
    """Return what a node would waste, as a value to compare: the smallest is the best. None if it lacks the GPUs.

    `left_milli` is what is left of each of the node's GPUs; the pod takes the GPUs with the least left.
    """
    chosen = sorted(left for left in left_milli if left >= milli)[:count]
    if len(chosen) < count:
        return None
    opened = chosen.count(_WHOLE_MILLI)
    return opened, sum(chosen) - count * milli, left_milli.count(_WHOLE_MILLI) - opened
