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
_STEP_SECONDS: Final = 300.0
_TIME_BITS: Final = 34
"""Unix seconds have fewer bits than this."""
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
    measured: FloatArray
    """For how many seconds there are samples of any pod, by day and row."""
    step_seconds: float = _STEP_SECONDS
    """The time that a sample stands for."""

    @classmethod
    def empty(cls, rows: ContainerRows, days: int, end: float, step_seconds: float = _STEP_SECONDS) -> CollectedCpu:
        """Return the collection before the first sample."""
        count = len(rows.names)
        return cls(
            UsageHistograms(CPU_SCALE, days, count),
            np.zeros(count, dtype=np.int64),
            np.full(count, np.inf),
            np.full(count, -np.inf),
            end,
            rows,
            np.zeros((days, count)),
            step_seconds,
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
        # Pods of one row that are measured at the same time count once.
        steps = np.unique((rows.astype(np.int64) << _TIME_BITS) + times.astype(np.int64)) >> _TIME_BITS
        self.measured[day] += np.bincount(steps, minlength=len(self.samples)) * self.step_seconds

    def begin_days(self, passed: int, end: float) -> None:
        """Make room for the days up to `end`, of which `passed` have begun since; the oldest ones are forgotten."""
        days = self.measured.shape[0]
        kept = max(days - passed, 0)
        for by_day in (self.histograms.weights, self.measured):
            by_day[days - kept :] = by_day[:kept].copy()
            by_day[: days - kept] = 0.0
        self.end = end

    def keep(self, rows: IntArray, of: ContainerRows) -> None:
        """Keep only these rows, which are called `of` from now on."""
        self.rows = of
        self.histograms.weights, self.measured = self.histograms.weights[:, rows], self.measured[:, rows]
        self.samples, self.first, self.last = self.samples[rows], self.first[rows], self.last[rows]

    def extend(self, rows: ContainerRows) -> None:
        """Add rows without samples for the names in `rows` that follow the current ones."""
        new = CollectedCpu.empty(
            ContainerRows(rows.names[len(self.rows.names) :], {}), self.measured.shape[0], self.end
        )
        self.rows = rows
        self.histograms.weights = np.concatenate([self.histograms.weights, new.histograms.weights], axis=1)
        self.measured = np.concatenate([self.measured, new.measured], axis=1)
        self.samples = np.concatenate([self.samples, new.samples])
        self.first, self.last = np.concatenate([self.first, new.first]), np.concatenate([self.last, new.last])


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
