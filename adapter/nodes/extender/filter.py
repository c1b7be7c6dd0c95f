"""Determines which nodes the pod would bring over a hard limit of utilisation (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from adapter.foundation.cluster.facts.pods import controller_of
from adapter.foundation.cluster.forms.pods import OwnerForm  # noqa: TC001 - msgspec reads the annotations when it runs
from adapter.foundation.cluster.values.pod_owners import is_of_daemon_set
from adapter.foundation.objects.decoders import decoder_of
from adapter.nodes.model.arrays import rows_in
from adapter.nodes.model.loads import WINDOW_NAMES, LoadResource
from adapter.nodes.model.usage import USAGE_KINDS, UsageName
from adapter.nodes.scores.policy_scores import load_taken, usage_source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.nodes_snapshot import NodesSnapshot
    from adapter.nodes.model.scheduling_settings import FilterSettings

_ROUNDING: Final = 1e-9
"""A sum that reaches a limit exactly is not over it, whatever the last bits of a float say."""


@dataclass(frozen=True, slots=True)
class _Placement:
    """The load of one resource if the pod were placed on the node: one ratio for each node in question."""

    measured: Floats
    recent: Floats
    pod: Floats

    @property
    def total(self) -> Floats:
        return self.measured + self.recent + self.pod


def failed_nodes(
    snapshot: NodesSnapshot,
    pod: PendingPod,
    names: Sequence[str],
    settings: FilterSettings,
    usage_limits: Mapping[UsageName, float] = MappingProxyType({}),
) -> Mapping[str, str]:
    """Return the nodes that would be over a limit, and why.

    A node that is unknown, whose metrics are missing, or whose load is only estimated is never among them: its load is
    not known to be too high. For network, disk and GPUs only the measured load counts, and a limit of GPUs applies only
    to pods that request some. `usage_limits` are the limits that policies set, by the usage that they limit.
    """
    limited = [resource for resource in LoadResource if _is_limited(resource, settings, pod)]
    if not limited and not usage_limits:
        return {}
    all_rows = rows_in(snapshot.columns.index, names)
    is_known = all_rows >= 0
    rows, known = all_rows[is_known], [names[position] for position in np.flatnonzero(is_known).tolist()]
    reasons: dict[str, str] = {}
    columns = snapshot.columns

    def judge(placement: _Placement, limits: Floats, sources: Callable[[Sequence[str]], Sequence[str]]) -> None:
        over = np.flatnonzero(placement.total > limits + _ROUNDING)
        failed = [known[position] for position in over.tolist()]
        for name, reason in zip(failed, _reasons(sources(failed), placement, over, limits), strict=True):
            reasons[name] = f"{reasons[name]}; {reason}" if name in reasons else reason

    for resource in limited:
        placement = _placement(columns, rows, resource, pod, settings)
        judge(placement, _limits(columns, rows, resource, settings), partial(_sources, snapshot, resource))
    for usage, limit in usage_limits.items():
        placement = _placement(columns, rows, usage, pod, settings)
        judge(placement, np.full(len(rows), limit), partial(_usage_sources, columns, usage))
    return reasons


def _is_limited(resource: LoadResource, settings: FilterSettings, pod: PendingPod) -> bool:
    is_set = resource in settings.limits or any(resource in limits for limits in settings.pools.values())
    return is_set and (resource is not LoadResource.GPU or pod.gpu_count > 0)


def _placement(
    columns: NodeColumns,
    rows: NDArray[np.intp],
    limited: LoadResource | UsageName,
    pod: PendingPod,
    settings: FilterSettings,
) -> _Placement:
    """Return the placement of the pod on nodes, by the measured average of a resource or by a usage of one."""
    by_limits = settings.use == "limits"
    if isinstance(limited, UsageName):
        resource = USAGE_KINDS[limited].resource
        measured = load_taken(columns.measured_usage_ratio, limited, rows)
        added = (columns.recent_usage_limits if by_limits else columns.recent_usage_requests).get(resource)
    else:
        resource, measured = limited, load_taken(columns.measured_ratio, limited, rows)
        added = (columns.recent_limits if by_limits else columns.recent_requests).get(resource)
    nothing = np.zeros(len(rows))
    capacity = columns.capacity.get(resource.value)
    if resource not in (LoadResource.CPU, LoadResource.MEMORY) or capacity is None:
        return _Placement(measured, nothing, nothing)
    # Without a capacity, the quotient is unknown, which accepts the node.
    total = np.where(capacity[rows] > 0, capacity[rows], np.nan)
    recent = nothing if added is None else added[rows] / total
    return _Placement(measured, recent, _pod_amount(pod, resource, by_limits=by_limits) / total)


def _pod_amount(pod: PendingPod, resource: LoadResource, *, by_limits: bool) -> int:
    """Return the amount that the pod adds: millicores for CPU, bytes for memory."""
    request = pod.resources.requests.get(resource.value, 0)
    return max(request, pod.resources.limits.get(resource.value, 0)) if by_limits else request


def _limits(columns: NodeColumns, rows: NDArray[np.intp], resource: LoadResource, settings: FilterSettings) -> Floats:
    general = settings.limits.get(resource, np.inf)
    by_pool = {pool: limits[resource] for pool, limits in settings.pools.items() if resource in limits}
    if not by_pool:
        return np.full(len(rows), general)
    pools = columns.pool
    return np.fromiter((by_pool.get(pools[row], general) for row in rows.tolist()), np.float64, len(rows))


def _reasons(
    sources: Sequence[str],
    placement: _Placement,
    over: NDArray[np.intp],
    limits: Floats,
) -> Iterator[str]:
    """Yield why each of these nodes fails, such as `cpu 15m average 83 percent over the limit 80 percent`.

    The scheduler uses reasons as a format for the text of an event, in which a percent sign would begin a formatting
    verb.
    """
    parts = (placement.measured, placement.recent, placement.pod, limits)
    numbers = (np.round(part[over] * 100.0, 1).tolist() for part in parts)
    for source, measured, recent, pod, limit in zip(sources, *numbers, strict=True):
        text = f"{source} {measured:g} percent"
        if recent > 0:
            text += f"{', ' if pod > 0 else ' and '}recently bound pods {recent:g} percent"
        if pod > 0:
            text += f" and this pod {pod:g} percent"
        yield f"{text} over the limit {limit:g} percent"


def _usage_sources(columns: NodeColumns, usage: UsageName, names: Sequence[str]) -> list[str]:
    """Return the meaning of each node's number, such as `cpu 1d peak of five minutes`."""
    return [str(USAGE_KINDS[usage_source(columns, usage, columns.index[name])]) for name in names]


def _sources(snapshot: NodesSnapshot, resource: LoadResource, names: Sequence[str]) -> list[str]:
    """Return the meaning of each node's number, such as `cpu 15m average`."""
    loads = snapshot.loads
    load = loads.resources.get(resource) if loads else None
    rows = rows_in(loads.index, names) if loads else np.full(len(names), -1)
    if load is None or (rows < 0).any():
        return [f"{resource} average"] * len(names)
    averages = [f"{resource} {name} average" for name in WINDOW_NAMES]
    return [averages[window] for window in load.taken_from[0, rows].tolist()]


SYSTEM_CRITICAL_PRIORITY: Final = 2_000_000_000
"""A pod with at least this priority is critical for the node or cluster (`system-cluster-critical`); users cannot set
it."""


class _PodMeta(msgspec.Struct, rename={"owners": "ownerReferences"}):
    owners: list[OwnerForm] | None = None


class _PodSpec(msgspec.Struct):
    priority: int | None = None


class _Pod(msgspec.Struct):
    metadata: _PodMeta | None = None
    spec: _PodSpec | None = None


_POD = decoder_of(_Pod)


def is_exempt(pod: bytes, daemon_sets: Collection[str] = ()) -> bool:
    """Return whether a Pod, given as JSON, is exempt from the filter. Raises msgspec.MsgspecError.

    A pod of a DaemonSet can run on only one node: if it is kept off that node, the node lacks its network or its log
    collector. A critical pod must run before all others. `daemon_sets` are the UIDs of all DaemonSets, empty if they
    are not known.
    """
    form = _POD.decode(pod)
    owner = controller_of(form.metadata.owners) if form.metadata else None
    priority = (form.spec.priority if form.spec else None) or 0
    return priority >= SYSTEM_CRITICAL_PRIORITY or is_of_daemon_set(owner, daemon_sets)
