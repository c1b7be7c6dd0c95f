"""The known usage of one workload, in the form that decisions need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.kinds.resources.size_record import SizeRecord
    from recommender.kinds.resources.workloads import WorkloadAutoscaler


@dataclass(frozen=True, slots=True)
class WorkloadUsage:
    """The sizes that follow from the usage of a workload, before brakes, limits and owners."""

    sizes: tuple[SizeRecord, ...]
    """The size of each of the workload's containers."""
    autoscaler: WorkloadAutoscaler | None = None
    """An HPA that follows the workload's CPU or memory, as kube-state-metrics reports it."""
