"""The load of all nodes at one moment: the value that every reader of the windows sees.

These types do not import numpy, since flags name resources even in a process that only supervises the worker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.week import HourForecast

WINDOWS_SECONDS: Final = (900, 600, 300, 3600, 86_400)
"""The windows; arrays by window are in this order. The first three are computed from samples, the longest first."""
WINDOW_NAMES: Final = ("15m", "10m", "5m", "1h", "1d")
SAMPLE_WINDOWS_SECONDS: Final = WINDOWS_SECONDS[:3]
SLOT_WINDOWS_SECONDS: Final = WINDOWS_SECONDS[3:]
"""Windows that are computed from the means of slots of five minutes."""
STATS: Final = ("avg", "std", "p95", "max")
"""Average, population standard deviation, 95th percentile, maximum; arrays by statistic are in this order."""
AVG, STD, P95, MAX = range(4)


class LoadResource(StrEnum):
    """A resource of a node whose use is measured."""

    CPU = "cpu"
    MEMORY = "memory"
    NETWORK = "network"
    DISK = "disk"
    GPU = "gpu"


class NodeVerdict(StrEnum):
    """The verdict on the samples of one resource of one node."""

    FRESH = "fresh"
    STALE = "stale"
    GAP = "gap"
    STUCK = "stuck"
    OUT_OF_RANGE = "out_of_range"
    COUNTER_RESET = "counter_reset"
    JUMPED = "jumped"
    MISSING = "missing"


VERDICTS: Final = tuple(NodeVerdict)
"""The number of a verdict in `ResourceLoad.verdicts` is its index here."""
SERVED_VERDICTS: Final = frozenset({NodeVerdict.FRESH, NodeVerdict.COUNTER_RESET, NodeVerdict.JUMPED, NodeVerdict.GAP})
"""Verdicts with which a window may be served; with `gap`, only a window that has enough samples."""


@dataclass(frozen=True, slots=True, eq=False)
class ResourceLoad:
    """The windows of one resource for all nodes, in the order of `LoadSnapshot.nodes`."""

    resource: LoadResource
    stats: Floats
    """Ratios (0..1) of shape (windows, stats, nodes); NaN where nothing is served. The windows of slots are missing
    until `windows/day` adds them."""
    taken_from: NDArray[np.int8]
    """The window that the numbers really come from, of shape (windows, nodes): an index of
    `WINDOWS_SECONDS`; -1 for none."""
    verdicts: NDArray[np.int8]
    """The verdict on each node's samples, an index of `VERDICTS`, of shape (nodes,)."""
    sampled_at: Floats
    """Unix seconds of the newest sample, of shape (nodes,); NaN for none."""
    is_estimated: NDArray[np.bool_]
    """Whether the numbers are estimated from the requests of the node's pods, of shape (nodes,)."""
    resolution_seconds: Floats
    """The scrape interval on which the numbers rest, of shape (nodes,); NaN if unknown."""

    def measured_values(self, window: int, stat: int) -> Floats:
        """Return a statistic of a window for each node; NaN where it is estimated or unknown.

        Code that rejects a node, calls it hot or moves pods away from it must use this, never an estimate.
        """
        found: Floats = self.stats[window, stat].copy()
        found[self.is_estimated] = math.nan
        return found


@dataclass(frozen=True, slots=True)
class UnmappedSeries:
    """A series that is not counted, because its node is not known or because it is refused."""

    instance: str
    labels: Mapping[str, str]
    resources: tuple[LoadResource, ...]
    fix: str
    """How to get the series mapped or counted, in one sentence."""
    refused_for: str = ""
    """Why the series does not count, although its node is known; empty if its node is not known."""


@dataclass(frozen=True, slots=True)
class MeasuringJob:
    """A job from which the load of nodes is taken."""

    labels: tuple[tuple[str, str], ...]
    """The job's labels, such as `job` and `namespace`; empty for series without any."""
    nodes: Mapping[LoadResource, int]
    """How many nodes the job measures, by resource."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadSnapshot:
    """The load of all nodes. Replaced as a whole by each refresh."""

    nodes: tuple[str, ...]
    """Sorted names. If Node objects are known, these are all of their names, so that nodes without samples are here
    too."""
    resources: Mapping[LoadResource, ResourceLoad]
    assembled_at: float
    """When the snapshot was assembled, in Unix seconds."""
    window_end: float
    """When the windows end, in Unix seconds; no sample is later."""
    from_file: bool = False
    unmapped: tuple[UnmappedSeries, ...] = ()
    """Series whose node is not known, or that are refused."""
    measured_by: tuple[MeasuringJob, ...] = ()
    index: Mapping[str, int] = field(default_factory=dict)
    """The index of each node in `nodes`."""
    query_failures: Mapping[LoadResource, str] = field(default_factory=dict)
    """Why the newest samples of a resource are missing."""
    forecast: HourForecast | None = None
    """The CPU of the next hour; None while no history is kept."""
