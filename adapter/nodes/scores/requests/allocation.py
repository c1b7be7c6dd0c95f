"""The quantities that the scoring strategies of NodeResourcesFit use: requests with the pod, allocatable amounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from adapter.nodes.scores.policy_scores import taken

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.scores.policy_scores import Rows

    Integers: TypeAlias = NDArray[np.int64]

_NON_ZERO: Final = frozenset({"cpu", "memory"})
_NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""These always count; others only if the pod requests them."""
_MOST: Final = float(2**56)
"""Larger amounts count as this one, 100 times of which is still an integer of 64 bits. A pod may request anything."""


def allocation(pod: PendingPod, columns: NodeColumns, rows: Rows, resource: str) -> tuple[Integers, Integers]:
    """Return the requests on each node including the pod's, and what is allocatable; both 0 where it does not count.

    CPU and memory are counted with the scheduler's defaults for containers without requests.
    """
    allocatable = taken(columns.allocatable, resource, rows)
    if resource in _NON_ZERO:
        wanted = pod.resources.non_zero_requests.get(resource, 0)
        requested = taken(columns.non_zero_requested, resource, rows)
    else:
        wanted = pod.resources.requests.get(resource, 0)
        requested = taken(columns.requested, resource, rows)
        if not wanted and resource not in _NATIVE:
            nothing = np.zeros(len(rows), dtype=np.int64)
            return nothing, nothing
    counts = allocatable > 0.0
    total, available = (np.where(counts, amount, 0.0) for amount in (requested + wanted, allocatable))
    return np.minimum(total, _MOST).astype(np.int64), np.minimum(available, _MOST).astype(np.int64)


def used_percent(requested: Integers, allocatable: Integers) -> Integers:
    """Return the requests in percent of what is allocatable, at most 100, in Go's integer arithmetic; 0 without any."""
    capped = np.minimum(requested, allocatable)
    result: Integers = capped * 100 // np.maximum(allocatable, 1)
    return result


def used_text(resource: str, requested: int, allocatable: int) -> str:
    """Return how much of a resource is requested, for people."""
    if allocatable == 0:
        return f"{resource} does not count"
    return f"{resource} is requested to {100 * requested // allocatable} %"
