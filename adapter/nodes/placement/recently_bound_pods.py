"""Calculates the load that recently bound pods add to the measured load of their nodes.

A pod is recent while the average of its node cannot contain all of its load. The time of binding is that of the
condition PodScheduled, so that after a restart no running pod counts as new.

TargetLoadPacking adds the whole prediction of a pod that was bound after the end of the metrics or less than 60 seconds
before it, and nothing for any other pod, as scheduler-plugins does.

All other policies add the part of a pod's requests that the average cannot contain. An average over W seconds contains
at most `age / W` of the load of a pod that has been on the node for `age` of these seconds, so `1 - age / W` of its
requests is added: the measured and the added load together never exceed the pod's requests, unless it uses more. W is
15 minutes, or five where averages of five minutes count (`usage_ratio`), or the length of the window in their place.
Nothing ends before the window does: if pods stopped counting earlier, a node that they had just filled would look free
for the rest of the window.

If samples of the window are missing, the average may contain up to a quarter more of the pod's load: at most a fifth of
the samples may be missing, or else a shorter window takes its place. Koordinator instead subtracts the usage that it
measured for each pod; node metrics do not show individual pods.

The load of a node that is estimated from requests includes all pods that were bound when the estimate was made, so only
pods that were bound later are added to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.loads import WINDOW_NAMES, WINDOWS_SECONDS, LoadResource, LoadSnapshot, ResourceLoad
from adapter.nodes.placement.pod_sums import (
    BOUND_AT,
    CPU_LIMIT,
    CPU_PREDICTION,
    CPU_REQUEST,
    GPU_REQUEST,
    MEMORY_LIMIT,
    MEMORY_REQUEST,
    NONE_BOUND,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats

UNMEASURED_SECONDS: Final = 300.0
"""Where no average is served, pods count in full for this long before the end of the metrics."""
REPORTING_SECONDS: Final = 60.0
"""`metricsAgentReportingIntervalSeconds` of scheduler-plugins."""

_FIELDS: Final = {
    LoadResource.CPU: (CPU_REQUEST, CPU_LIMIT),
    LoadResource.MEMORY: (MEMORY_REQUEST, MEMORY_LIMIT),
    LoadResource.GPU: (GPU_REQUEST, GPU_REQUEST),
}
"""The columns of request and limit; limits of GPUs are their requests."""

_FIFTEEN_MINUTES: Final = WINDOW_NAMES.index("15m")
_FIVE_MINUTES: Final = WINDOW_NAMES.index("5m")


@dataclass(frozen=True, slots=True, eq=False)
class RecentAdditions:
    """Additions to the load of each node, in the units of `NodeColumns`."""

    cpu_prediction_milli: Floats
    requests: Mapping[LoadResource, Floats]
    limits: Mapping[LoadResource, Floats]
    usage_requests: Mapping[LoadResource, Floats]
    """The parts of requests that averages of five minutes do not contain; `usage_limits` has those of limits."""
    usage_limits: Mapping[LoadResource, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class LatelyBound:
    """The pods that may be recent, of all nodes, with one row each."""

    node: NDArray[np.int64]
    """Index of the node."""
    values: Floats
    """The rows of `NodeSums.bound_lately`, of shape (pods, 7)."""


def lately_bound(by_node: Sequence[Floats]) -> LatelyBound:
    """Return the pods of all nodes in one table."""
    counts = np.fromiter(map(len, by_node), dtype=np.int64, count=len(by_node))
    occupied = np.flatnonzero(counts)
    rows: list[int] = occupied.tolist()
    return LatelyBound(
        np.repeat(occupied, counts[occupied]), np.concatenate([NONE_BOUND, *(by_node[row] for row in rows)])
    )


def additions(bound: LatelyBound, loads: LoadSnapshot | None, rows: NDArray[np.intp], now: float) -> RecentAdditions:
    """Return the load that recently bound pods add.

    `rows` has the index of each node in `loads.nodes`, -1 for a node that is not there. Without loads, the metrics are
    taken to end now and to contain no pod.
    """
    nodes, of_pods = len(rows), rows[bound.node]
    if loads is not None and not loads.nodes:
        loads = None
    end = min(now, loads.window_end) if loads else now
    # A clock that is ahead must not make a pod older or younger than the present.
    at = np.minimum(bound.values[:, BOUND_AT], now)
    unmeasured_left = (at > end - UNMEASURED_SECONDS).astype(np.float64)

    def unmeasured(window: int) -> tuple[dict[LoadResource, Floats], dict[LoadResource, Floats]]:
        """Return the parts of requests and limits that the averages over this window cannot contain."""
        requests: dict[LoadResource, Floats] = {}
        limits: dict[LoadResource, Floats] = {}
        for resource in LoadResource:
            request, limit = _FIELDS.get(resource, (None, None))
            if request is None or limit is None:
                requests[resource] = limits[resource] = np.zeros(nodes)
                continue
            left = unmeasured_left
            if loads and (load := loads.resources.get(resource)) is not None:
                shares = _measured_shares(load, of_pods, window, end - at)
                left = np.where(np.isnan(shares), unmeasured_left, 1.0 - shares)
                left[_in_estimate(load, loads, of_pods, at)] = 0.0
            requests[resource] = _sum_by_node(bound.node, bound.values[:, request] * left, nodes)
            limits[resource] = _sum_by_node(bound.node, bound.values[:, limit] * left, nodes)
        return requests, limits

    counted = at > end - REPORTING_SECONDS
    if loads and (cpu := loads.resources.get(LoadResource.CPU)) is not None:
        counted &= ~_in_estimate(cpu, loads, of_pods, at)
    predictions = _sum_by_node(bound.node, bound.values[:, CPU_PREDICTION] * counted, nodes)
    return RecentAdditions(predictions, *unmeasured(_FIFTEEN_MINUTES), *unmeasured(_FIVE_MINUTES))


def _measured_shares(load: ResourceLoad, rows: NDArray[np.intp], window: int, ages: Floats) -> Floats:
    """Return the largest part of each pod's load that the average of its node can contain; NaN without an average."""
    # The average over the window, or over the one that stands in for it.
    taken_from = np.where(rows >= 0, load.taken_from[window][rows], -1)
    seconds = np.asarray((*WINDOWS_SECONDS, np.nan))[taken_from]
    return np.asarray(np.clip(ages / seconds, 0.0, 1.0))


def _in_estimate(load: ResourceLoad, loads: LoadSnapshot, rows: NDArray[np.intp], at: Floats) -> NDArray[np.bool_]:
    return (rows >= 0) & load.is_estimated[rows] & (at <= loads.assembled_at)


def _sum_by_node(node: NDArray[np.int64], values: Floats, nodes: int) -> Floats:
    return np.bincount(node, weights=values, minlength=nodes).astype(np.float64)
