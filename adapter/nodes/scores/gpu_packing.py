"""gpu-packing: use GPUs that are partly used before free ones, and used nodes before free nodes.

The three bands are those of the GpuPacking baseline of hkust-adsl/kubernetes-scheduler-simulator, in its integer
arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.scores.policy_scores import PolicyScores

if TYPE_CHECKING:
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.settings import GpuPackingArgs
    from adapter.nodes.scores.policy_scores import Rows

_WHOLE_MILLI: Final = 1000
_USED_GPUS_LEAST: Final = 50
_USED_NODE_LEAST: Final = 33


def score(pod: PendingPod, columns: NodeColumns, rows: Rows, _args: GpuPackingArgs) -> PolicyScores:
    """Return scores by the GPUs that the pod would use; 0 everywhere for a pod without GPUs."""
    if not (pod.gpu_count and pod.gpu_milli):
        return PolicyScores(np.zeros(len(rows)), lambda _: "the pod requests no GPU")
    left = [columns.gpu_left_milli[row] for row in rows.tolist()]
    # Most nodes share their state with others, whatever the order of their GPUs is.
    states = [tuple(sorted(state)) for state in left]
    by_state = {state: packing_score(state, pod.gpu_count, pod.gpu_milli) for state in set(states)}
    values = np.array([by_state[state] for state in states], dtype=np.float64)

    def reason(position: int) -> str:
        state = left[position]
        chosen = _chosen(state, pod.gpu_count, pod.gpu_milli)
        if chosen is None:
            return f"{pod.gpu_count} GPUs with {pod.gpu_milli} of {_WHOLE_MILLI} are not left on the node"
        free = sum(milli == _WHOLE_MILLI for milli in state)
        opened = sum(milli == _WHOLE_MILLI for milli in chosen)
        return f"{free} of {len(state)} GPUs are free, and the pod would take {opened} of these"

    return PolicyScores(values, reason)


def packing_score(left_milli: tuple[int, ...], count: int, milli: int) -> int:
    """Return the score of one node.

    51 to 100 (or 50): the pod fits into partly used GPUs, better the less is left of them. 33 to 49: the node is partly
    used, but free GPUs must be opened. Up to 32: all GPUs of the node are free, better the fewer there are. 0: the node
    does not have the GPUs.
    """
    chosen = _chosen(left_milli, count, milli)
    if chosen is None:
        return 0
    size = len(left_milli)
    if all(left == _WHOLE_MILLI for left in left_milli):
        return max(_USED_NODE_LEAST - size, size)
    opened = sum(left == _WHOLE_MILLI for left in chosen)
    if opened:
        return max(_USED_GPUS_LEAST - opened, _USED_NODE_LEAST)
    return max(100 - sum(left * 100 // _WHOLE_MILLI for left in chosen) // 10, _USED_GPUS_LEAST)


def _chosen(left_milli: tuple[int, ...], count: int, milli: int) -> list[int] | None:
    """Return what is left of the GPUs that the pod would take, least first; None if the node does not have them."""
    chosen = sorted(left for left in left_milli if left >= milli)[:count]
    return chosen if len(chosen) == count else None
