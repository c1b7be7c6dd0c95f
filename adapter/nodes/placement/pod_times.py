"""Determines when the pods of a node last changed, which explains a jump of its load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.cluster.values.placed_pods import PlacedPods
    from adapter.foundation.cluster.values.state import ClusterPod
    from adapter.nodes.model.arrays import Floats


def last_changed_at(names: Sequence[str], pods: PlacedPods) -> Floats:
    """Return the Unix seconds at which a pod was last bound to each node, or ended there; NaN if none is known."""
    return np.fromiter(
        (_last(pods.by_node.get(name, ()), pods.last_ended_at.get(name)) for name in names),
        dtype=np.float64,
        count=len(names),
    )


def _last(pods: tuple[ClusterPod, ...], ended_at: float | None) -> float:
    times = [pod.bound_at for pod in pods if pod.bound_at is not None]
    if ended_at is not None:
        times.append(ended_at)
    return max(times, default=np.nan)
