"""The inputs of scores: one column for each fact, in the order of the nodes; and the pod to be placed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from adapter.foundation.objects.pod_requests import PodResources

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.loads import LoadResource
    from adapter.nodes.model.usage import UsageName
    from adapter.nodes.model.week import HourForecast
    from adapter.nodes.model.workload import GpuPodKind


class KeptRows:
    """Arrays with a column for each node; each column is computed when it is first requested.

    It may be used by any number of threads. It belongs to values that never change, so its content stays valid.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Hashable, tuple[NDArray[np.bool_], Floats]] = {}

    def of(
        self, name: Hashable, height: int, rows: NDArray[np.intp], compute: Callable[[NDArray[np.intp]], Floats]
    ) -> Floats:
        """Return an array of shape (height, rows); `compute` makes such an array for the rows that are not kept yet.

        `name` identifies the function and everything that it depends on besides the rows. Rows are not negative.
        """
        if not len(rows):
            return np.empty((height, 0))
        with self._lock:
            is_known, values = self._with_room(name, height, int(rows.max()) + 1)
            lacking = np.unique(rows[~is_known[rows]])
            if len(lacking):
                values[:, lacking] = compute(lacking)
                is_known[lacking] = True
            found: Floats = values[:, rows]
            return found

    def _with_room(self, name: Hashable, height: int, size: int) -> tuple[NDArray[np.bool_], Floats]:
        kept = self._kept.get(name)
        if kept is None or len(kept[0]) < size:
            is_known, values = np.zeros(size, dtype=np.bool_), np.full((height, size), np.nan)
            if kept is not None:
                is_known[: len(kept[0])], values[:, : len(kept[0])] = kept
            kept = self._kept[name] = is_known, values
        return kept


@dataclass(frozen=True, slots=True, eq=False)
class NodeColumns:
    """The facts about all nodes: CPU in millicores, memory in bytes, other resources as counts.

    Arrays are read-only and of shape (nodes,). Resources are named as in Kubernetes (`cpu`, `memory`, `pods`,
    `nvidia.com/gpu`); a resource that a node does not have is 0.
    """

    names: tuple[str, ...]
    index: Mapping[str, int]
    capacity: Mapping[str, Floats]
    allocatable: Mapping[str, Floats]
    requested: Mapping[str, Floats]
    """Sums over the pods that are bound to the node and have not ended, as the scheduler counts them."""
    non_zero_requested: Mapping[str, Floats]
    """`cpu` and `memory` with the scheduler's defaults (100m, 200 MiB) for containers without requests."""
    limits: Mapping[str, Floats]
    """Sums of limits (`cpu`, `memory`), where each pod's limits are raised to at least its requests."""
    mean_ratio: Mapping[LoadResource, Floats]
    """Average (15 minutes, or the window that stands in for it), measured or estimated; NaN if unknown."""
    measured_ratio: Mapping[LoadResource, Floats]
    """The measured part of `mean_ratio`; NaN where it is estimated."""
    std_ratio: Mapping[LoadResource, Floats]
    """Standard deviation of the same window; NaN if unknown."""
    recent_cpu_prediction_milli: Floats
    """CPU that TargetLoadPacking predicts for those recently bound pods that the metrics do not contain yet."""
    recent_requests: Mapping[LoadResource, Floats]
    """Requests of recently bound pods that the metrics do not contain yet: millicores for CPU, bytes for memory."""
    recent_limits: Mapping[LoadResource, Floats]
    """The limits of the same pods, each raised to at least the request."""
    zone: NDArray[np.int32]
    """Number of the node's zone (region and zone together); -1 for none."""
    pool: tuple[str, ...]
    """Value of the pool label of each node; empty for none."""
    gpu_left_milli: tuple[tuple[int, ...], ...]
    """The free share of each GPU of each node, in thousandths (1000 for a free GPU)."""
    gpu_workload: Mapping[GpuPodKind, float] = field(default_factory=dict)
    """The pods that request GPUs, by kind: each bound pod counts 1; all pending pods together count at most as much as
    all bound ones, so that nobody dominates the mix with pods that no node could ever hold."""
    usage_ratio: Mapping[UsageName, Floats] = field(default_factory=dict)
    """Use over windows up to a day, measured or estimated; NaN if unknown. A longer window is at least as high as the
    shorter ones of its resource: the current load is also a peak of the day."""
    measured_usage_ratio: Mapping[UsageName, Floats] = field(default_factory=dict)
    """The measured part of `usage_ratio`."""
    recent_usage_requests: Mapping[LoadResource, Floats] = field(default_factory=dict)
    """As `recent_requests`, beside `usage_ratio`: its averages of five minutes contain more of these pods."""
    recent_usage_limits: Mapping[LoadResource, Floats] = field(default_factory=dict)
    usage_from: Mapping[UsageName, NDArray[np.int8]] = field(default_factory=dict)
    """Which use each number shows, as an index of `USAGE_NAMES`; -1 for none. Where the use over a window is not known,
    that over a shorter one is shown."""
    forecast: HourForecast | None = None
    """The CPU of the next hour; None while no history is kept."""
    kept: KeptRows = field(default_factory=KeptRows, repr=False, compare=False)
    """Results that policies have computed only from these columns."""


@dataclass(frozen=True, slots=True)
class PendingPod:
    """The pod to be placed."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    scheduler_name: str = "default-scheduler"
    resources: PodResources = field(default_factory=PodResources)
    has_spread_constraints: bool = False
    has_resource_claims: bool = False
    """Whether the pod gets devices by dynamic resource allocation; nothing shows which devices, or how many of them are
    left."""
    gpu_count: int = 0
    gpu_milli: int = 0
    """The share that the pod needs of each of its GPUs: 1000 for whole ones; 0 without GPUs."""
    owner_selector: str = ""
    """Selector (kubectl's syntax) of the Services and the controller that the pod belongs to; empty for none."""
