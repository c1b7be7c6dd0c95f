"""The quantities that the scoring strategies of NodeResourcesFit use: requests with the pod, allocatable amounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from adapter.nodes.scores.policy_scores import clamp_scores, column_of_rows, share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.scheduling_settings import ResourceWeight
    from adapter.nodes.scores.policy_scores import Rows

    Booleans: TypeAlias = NDArray[np.bool_]
    Integers: TypeAlias = NDArray[np.int64]

_NON_ZERO: Final = frozenset({"cpu", "memory"})
_NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""Resources that always count; others count only if the pod requests them."""
_MOST: Final = float(2**56)
"""Larger amounts are capped to this one, since a pod may request anything; 100 times this still fits into 64 bits."""


def allocation(pod: PendingPod, columns: NodeColumns, rows: Rows, resource: str) -> tuple[Integers, Integers]:
    """Return each node's requests with the pod's, and its allocatable amount; both 0 if the resource does not count.

    CPU and memory are counted with the scheduler's defaults for containers without requests.
    """
    allocatable = column_of_rows(columns.allocatable, resource, rows)
    if resource in _NON_ZERO:
        wanted = pod.resources.non_zero_requests.get(resource, 0)
        requested = column_of_rows(columns.non_zero_requested, resource, rows)
    else:
        wanted = pod.resources.requests.get(resource, 0)
        requested = column_of_rows(columns.requested, resource, rows)
        if not wanted and resource not in _NATIVE:
            nothing = np.zeros(len(rows), dtype=np.int64)
            return nothing, nothing
    counts = allocatable > 0.0
    total, available = (np.where(counts, amount, 0.0) for amount in (requested + wanted, allocatable))
    return np.minimum(total, _MOST).astype(np.int64), np.minimum(available, _MOST).astype(np.int64)


def requested_shares(pod: PendingPod, columns: NodeColumns, rows: Rows, resources: Iterable[str]) -> Floats:
    """Return how much of these resources is requested with the pod, as the sum of their shares."""
    used = np.zeros(len(rows))
    for resource in resources:
        requested, allocatable = allocation(pod, columns, rows, resource)
        used += clamp_scores(share(requested.astype(np.float64), allocatable.astype(np.float64)), 1.0)
    return used


class ResourceUse(NamedTuple):
    """How much of one resource is requested on each node, including the pod's requests."""

    resource: str
    weight: int
    requested: Integers
    allocatable: Integers
    """The allocatable amounts; 0 if the resource does not count, and its requests are then 0 too."""

    @property
    def percent(self) -> Integers:
        """The requests in percent of what is allocatable, at most 100, in Go's integer arithmetic."""
        capped = np.minimum(self.requested, self.allocatable)
        result: Integers = capped * 100 // np.maximum(self.allocatable, 1)
        return result


def resource_uses(
    pod: PendingPod, columns: NodeColumns, rows: Rows, resources: Iterable[ResourceWeight]
) -> tuple[ResourceUse, ...]:
    """Return the use of each resource."""
    return tuple(ResourceUse(item.name, item.weight, *allocation(pod, columns, rows, item.name)) for item in resources)


def weighted_sum(
    uses: Sequence[ResourceUse], value_of: Callable[[ResourceUse], tuple[Integers, Booleans]], nodes: int
) -> tuple[Integers, Integers]:
    """Return the sum of values times weights by node, and the sum of the weights, at least 1.

    `value_of` returns the values of a resource, and the nodes on which it counts.
    """
    total, weights = (np.zeros(nodes, dtype=np.int64) for _ in range(2))
    for use in uses:
        values, counts = value_of(use)
        total += use.weight * values
        weights += use.weight * counts
    return total, np.maximum(weights, 1)


def reason_of(uses: Sequence[ResourceUse]) -> Callable[[int], str]:
    """Return the function that says how much of each resource is requested on a node, by its position."""

    def reason(position: int) -> str:
        return "; ".join(
            _used_text(use.resource, int(use.requested[position]), int(use.allocatable[position])) for use in uses
        )

    return reason


def _used_text(resource: str, requested: int, allocatable: int) -> str:
    if allocatable == 0:
        return f"{resource} does not count"
    return f"{resource} is requested to {100 * requested // allocatable}%"
