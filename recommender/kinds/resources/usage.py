"""Usage of the containers of some namespaces, collected as it arrives: CPU as samples, memory as peaks by day."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.resources.histograms import CPU_SCALE, DAY_SECONDS, MEMORY_SCALE, FloatArray, UsageHistograms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.resources.histograms import IntArray
    from recommender.kinds.resources.workloads import PodContainer, WorkloadContainer

MOST_CORES: Final = CPU_SCALE.maximum
"""More cores than any machine has; a larger rate comes from a counter that jumped."""
MOST_BYTES: Final = 1e15
"""More memory than any machine has."""
_SWING_SHARE: Final = 0.75
_FEWEST_DIFFERENCES: Final = 2
_ASSUMED_SWING_RATIO: Final = 0.07
"""The assumed swing, which results in the room that the Vertical Pod Autoscaler always leaves."""


@dataclass(frozen=True, slots=True)
class ContainerRows:
    """The containers of workloads as rows, and the row of each container of a pod."""

    names: tuple[WorkloadContainer, ...]
    places: Mapping[PodContainer, int]

    @classmethod
    def of(cls, workloads: Mapping[PodContainer, WorkloadContainer]) -> ContainerRows:
        """Return the rows of the pods' containers, in order of their names."""
        names = tuple(sorted(set(workloads.values())))
        numbers = {name: number for number, name in enumerate(names)}
        return cls(names, {pod: numbers[name] for pod, name in workloads.items()})


@dataclass(frozen=True, slots=True)
class UsageSamples:
    """Samples of the CPU or memory of one container of a pod, as they were received."""

    pod: PodContainer
    times: FloatArray
    """Unix seconds."""
    values: FloatArray
    """Cores, or bytes of memory."""


@dataclass(slots=True)
class CollectedCpu:
    """Histograms of the rows' CPU usage, with the number of samples and the period that they cover."""

    histograms: UsageHistograms
    samples: IntArray
    first: FloatArray
    """Time of the first sample in Unix seconds; infinite without a sample."""
    last: FloatArray
    end: float
    """Unix seconds of the moment at which the history ends."""
    rows: ContainerRows = field(repr=False)

    @classmethod
    def empty(cls, rows: ContainerRows, days: int, end: float) -> CollectedCpu:
        """Return the collection before the first sample."""
        count = len(rows.names)
        return cls(
            UsageHistograms(CPU_SCALE, days, count),
            np.zeros(count, dtype=np.int64),
            np.full(count, np.inf),
            np.full(count, -np.inf),
            end,
            rows,
        )

    def add(self, day: int, found: Sequence[UsageSamples]) -> None:
        """Add samples of a day, where days are counted back from the end. Impossible values are left out."""
        known = [(self.rows.places[each.pod], each) for each in found if each.pod in self.rows.places]
        if not known:
            return
        rows = np.repeat([row for row, _ in known], [len(each.times) for _, each in known])
        times = np.concatenate([each.times for _, each in known])
        cores = np.concatenate([each.values for _, each in known])
        # A comparison with NaN is false.
        usable = (cores >= 0) & (cores <= MOST_CORES)
        rows, times, cores = rows[usable], times[usable], cores[usable]
        self.histograms.add(day, rows, cores, self.end - times)
        self.samples += np.bincount(rows, minlength=len(self.samples))
        np.minimum.at(self.first, rows, times)
        np.maximum.at(self.last, rows, times)


@dataclass(frozen=True, slots=True)
class MemoryPeaks:
    """The largest working set of each container of a pod on each day, in bytes; NaN where it is unknown."""

    pods: tuple[PodContainer, ...]
    peaks: FloatArray
    """Peaks by day (0 is the last one) and container."""
    is_newest_partial: bool = False
    """Whether the last day is not over, so that its peaks may still be to come."""

    def histograms(self, rows: ContainerRows) -> UsageHistograms:
        """Return the histograms of the rows; a peak counts as one sample at the end of its day."""
        days = self.peaks.shape[0]
        found = UsageHistograms(MEMORY_SCALE, days, len(rows.names))
        places = np.array([rows.places.get(pod, -1) for pod in self.pods], dtype=np.int64)
        for day in range(days):
            usable = (places >= 0) & (self.peaks[day] > 0) & np.isfinite(self.peaks[day])
            found.add(
                day,
                places[usable],
                self.peaks[day][usable],
                np.full(int(usable.sum()), day * DAY_SECONDS),
            )
        return found

    def first_days(self, rows: ContainerRows) -> IntArray:
        """Return the first day with a peak of each row, counted back from the last one; -1 without a peak."""
        found = np.full(len(rows.names), -1, dtype=np.int64)
        places = np.array([rows.places.get(pod, -1) for pod in self.pods], dtype=np.int64)
        known = np.isfinite(self.peaks) & (places >= 0)
        first = self.peaks.shape[0] - 1 - known[::-1].argmax(axis=0)
        has_peak = known.any(axis=0)
        np.maximum.at(found, places[has_peak], first[has_peak])
        return found

    def swings(self, rows: ContainerRows) -> FloatArray:
        """Return how much the largest peak of each row differs from one day to the next, as a ratio.

        On three of four days, the peak differs by no more than this. With fewer than three consecutive days, the result
        is an assumption.
        """
        largest = np.full((self.peaks.shape[0], len(rows.names)), np.nan)
        for place, pod in enumerate(self.pods):
            row = rows.places.get(pod)
            if row is not None:
                largest[:, row] = np.fmax(largest[:, row], self.peaks[:, place])
        whole = largest[1:] if self.is_newest_partial else largest
        with np.errstate(invalid="ignore", divide="ignore"):
            differences = np.abs(np.diff(np.log(whole), axis=0))
        differences[~np.isfinite(differences)] = np.nan
        found = np.full(len(rows.names), _ASSUMED_SWING_RATIO)
        known = np.isfinite(differences).sum(axis=0) >= _FEWEST_DIFFERENCES
        if known.any():
            found[known] = np.expm1(np.nanquantile(differences[:, known], _SWING_SHARE, axis=0))
        return found
