"""Which nodes would be over a hard limit of utilisation with this pod (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.extender.rows import rows_of
from adapter.nodes.model.loads import WINDOW_NAMES, LoadResource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from adapter.nodes.model.board import Board
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.samples import Floats
    from adapter.nodes.model.settings import FilterSettings

_ROUNDING: Final = 1e-9
"""A sum that reaches a limit exactly is not over it, whatever the last bits of a float say."""


@dataclass(frozen=True, slots=True)
class _Placement:
    """The load of one resource if the pod came to the node: ratios, one for each node in question."""

    measured: Floats
    recent: Floats
    pod: Floats

    @property
    def total(self) -> Floats:
        return self.measured + self.recent + self.pod


def failed_nodes(board: Board, pod: PendingPod, names: Sequence[str], settings: FilterSettings) -> Mapping[str, str]:
    """Return the nodes that would be over a limit, and why.

    A node that is unknown or whose metrics are missing is never among them: its load is not known to be too high. Of
    network, disk and GPUs only what is measured counts, and a limit of the GPUs holds only for pods that ask for some.
    """
    limited = [resource for resource in LoadResource if _is_limited(resource, settings, pod)]
    if not limited:
        return {}
    all_rows = rows_of(board.columns, names)
    is_known = all_rows >= 0
    rows, known = all_rows[is_known], [names[position] for position in np.flatnonzero(is_known).tolist()]
    reasons: dict[str, list[str]] = {}
    for resource in limited:
        placement = _placement(board.columns, rows, resource, pod, settings)
        limits = _limits(board.columns, rows, resource, settings)
        for position in np.flatnonzero(placement.total > limits + _ROUNDING).tolist():
            name = known[position]
            reasons.setdefault(name, []).append(_reason(board, resource, name, placement, position, limits[position]))
    return {name: "; ".join(texts) for name, texts in reasons.items()}


def _is_limited(resource: LoadResource, settings: FilterSettings, pod: PendingPod) -> bool:
    is_set = resource in settings.limits or any(resource in limits for limits in settings.pools.values())
    return is_set and (resource is not LoadResource.GPU or pod.gpu_count > 0)


def _placement(
    columns: NodeColumns, rows: NDArray[np.intp], resource: LoadResource, pod: PendingPod, settings: FilterSettings
) -> _Placement:
    nothing = np.zeros(len(rows))
    mean = columns.mean_ratio.get(resource)
    measured = np.full(len(rows), np.nan) if mean is None else mean[rows]
    capacity = columns.capacity.get(resource.value)
    if resource not in (LoadResource.CPU, LoadResource.MEMORY) or capacity is None:
        return _Placement(measured, nothing, nothing)
    by_limits = settings.use == "limits"
    added = (columns.recent_limits if by_limits else columns.recent_requests).get(resource)
    # Without a capacity there is no share of it: the quotient is unknown, which accepts the node.
    total = np.where(capacity[rows] > 0, capacity[rows], np.nan)
    recent = nothing if added is None else added[rows] / total
    return _Placement(measured, recent, _asked(pod, resource, by_limits=by_limits) / total)


def _asked(pod: PendingPod, resource: LoadResource, *, by_limits: bool) -> int:
    """Return what the pod adds: milli for CPU, bytes for memory."""
    request = pod.resources.requests.get(resource.value, 0)
    return max(request, pod.resources.limits.get(resource.value, 0)) if by_limits else request


def _limits(columns: NodeColumns, rows: NDArray[np.intp], resource: LoadResource, settings: FilterSettings) -> Floats:
    general = settings.limits.get(resource, np.inf)
    by_pool = {pool: limits[resource] for pool, limits in settings.pools.items() if resource in limits}
    if not by_pool:
        return np.full(len(rows), general)
    pools = columns.pool
    return np.fromiter((by_pool.get(pools[row], general) for row in rows.tolist()), np.float64, len(rows))


def _reason(board: Board, resource: LoadResource, name: str, placement: _Placement, position: int, limit: float) -> str:
    measured, recent, pod = (float(part[position]) for part in (placement.measured, placement.recent, placement.pod))
    parts = [f"{resource} {_source(board, resource, name)} {_percent(measured)}"]
    parts += [f"recently bound pods {_percent(recent)}"] if recent >= 0.0005 else []
    parts += [f"this pod {_percent(pod)}"] if pod >= 0.0005 else []
    if len(parts) == 1:
        return f"{parts[0]} over the limit {_percent(limit)}"
    return f"{', '.join(parts[:-1])} and {parts[-1]} over the limit {_percent(limit)}"


def _source(board: Board, resource: LoadResource, name: str) -> str:
    """Return what the number is: the average of which window, or an estimate."""
    load = board.loads.resources.get(resource) if board.loads else None
    row = board.loads.index.get(name) if board.loads else None
    if load is None or row is None:
        return "average"
    if load.is_estimated[row]:
        return "estimate"
    window = int(load.taken_from[0, row])
    return f"{WINDOW_NAMES[window]} average" if window >= 0 else "average"


def _percent(ratio: float) -> str:
    """Return percent with at most one decimal."""
    return f"{ratio * 100:.1f}".removesuffix(".0") + "%"
