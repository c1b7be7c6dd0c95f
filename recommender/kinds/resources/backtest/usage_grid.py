"""Usage of each pod's containers at each step, for whole days."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recommender.kinds.resources.histograms import DAY_SECONDS

if TYPE_CHECKING:
    from recommender.kinds.resources.histograms import IntArray
    from recommender.kinds.resources.usage import ContainerRows
    from recommender.kinds.resources.workloads import PodContainer

SampleArray: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class UsageGrid:
    """Usage of the containers of some pods; the oldest step is first, and unknown values are NaN."""

    rows: ContainerRows
    pods: tuple[PodContainer, ...]
    cores: SampleArray
    """Cores by pod and step."""
    memory: SampleArray
    """Memory in bytes, by pod and step."""
    edges: tuple[int, ...]
    """The first step of each day, and the end of the last day."""
    step_seconds: float
    kills: tuple[frozenset[PodContainer], ...] = ()
    """Containers that were killed because they were out of memory, by day, oldest first."""

    @property
    def days(self) -> int:
        """Number of whole days."""
        return len(self.edges) - 1

    @cached_property
    def places(self) -> IntArray:
        """The row of each pod."""
        return np.array([self.rows.places[pod] for pod in self.pods], dtype=np.int64)

    def day(self, number: int) -> slice:
        """Return the steps of a day; 0 is the oldest."""
        return slice(self.edges[number], self.edges[number + 1])

    def killed_containers(self, number: int) -> frozenset[PodContainer]:
        """Return the containers that were killed on a day."""
        return self.kills[number] if self.kills else frozenset()


def edges_of(days: int, step_seconds: float) -> tuple[int, ...]:
    """Return the edges of this number of days."""
    return tuple(round(number * DAY_SECONDS / step_seconds) for number in range(days + 1))
