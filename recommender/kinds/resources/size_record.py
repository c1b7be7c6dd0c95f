"""The recommended size of a container, with everything that it was computed from, and the sizes of a workload."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.kinds.resources.workloads import SizedWorkload, WorkloadAutoscaler


class SizeStatus(StrEnum):
    """Whether a size may be used."""

    OK = "ok"
    HELD = "held"
    """The requests stay as they are; the sizes are only for information."""
    ERROR = "error"
    """There is no size."""


@dataclass(frozen=True, slots=True)
class ResourceSize:
    """The size for one resource, in millicores or in bytes."""

    request: int | None
    """The largest current request of the pods; None if they state none, or if it is unknown."""
    limit: int | None
    lower: int
    target: int
    upper: int
    low: int | None
    """The lower end of the 90% interval of the target; None with fewer than three days."""
    high: int | None
    recommended_limit: int | None
    """The recommended limit; None if the limit stays unchanged or if there is none."""
    saves: int | None
    """What all present pods save together; below 0 if more is needed. None if the requests are unknown or stay
    unchanged."""


@dataclass(frozen=True, slots=True)
class SizeRecord:
    """The sizes of one container of a workload."""

    workload: SizedWorkload
    container: str
    status: SizeStatus
    message: str
    replicas: int
    """How many pods run the container now."""
    history_seconds: float
    """The time from the first to the last sample."""
    samples: int
    oom_kills: int
    """Pod-days on which the container was killed because it was out of memory."""
    cpu: ResourceSize | None
    memory: ResourceSize | None
    memory_history_seconds: float = math.inf
    """For how long memory has certainly been measured, if that is less than a day; otherwise `history_seconds`, or
    more."""
    measured_seconds: float = math.inf
    """For how much of the history there are samples of CPU; infinite if that is unknown."""


@dataclass(frozen=True, slots=True)
class WorkloadUsage:
    """The sizes that follow from the usage of a workload, before brakes, limits and owners."""

    sizes: tuple[SizeRecord, ...]
    """The size of each of the workload's containers."""
    autoscaler: WorkloadAutoscaler | None = None
    """An HPA that follows the workload's CPU or memory, as kube-state-metrics reports it."""
