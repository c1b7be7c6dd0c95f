"""The growing usage of the targets of one recommendation: histograms and peaks by day of UTC.

Usage is added in parts, each of which lies in one day. Usage that is older than the history is dropped when a day
begins, and that of ended containers sooner if their places are needed. The number of rows is bounded: there are at most
`MOST_CONTAINERS` histograms and `MOST_PODS` peaks per day.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.decisions.targets.fair_order import in_rounds
from recommender.kinds.resources.histograms import CPU_SCALE, DAY_SECONDS, HALF_LIFE_SECONDS, UsageHistograms
from recommender.kinds.resources.oom_kills import memory_after_oom
from recommender.kinds.resources.sizing import MEBIBYTE, SizingOptions, size_records
from recommender.kinds.resources.usage import MOST_BYTES, CollectedCpu, ContainerRows, MemoryPeaks
from recommender.kinds.resources.workloads import MEMORY, ClusterFacts, PodContainer, SizedWorkload, WorkloadContainer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from recommender.kinds.resources.histograms import FloatArray
    from recommender.kinds.resources.size_record import SizeRecord

MOST_CONTAINERS: Final = 10_000
MOST_PODS: Final = 200_000
"""The largest number of containers of pods whose peaks are kept; those that ended first are dropped first."""
SAME_KILL_SECONDS: Final = 900.0
"""A kill is seen in each part whose look-back contains it; another sighting within this time counts as the same."""
GONE_SECONDS: Final = 900.0
"""A container without samples for this long is no longer part of its workload, if other containers have samples."""
_ROWS_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class UsagePart:
    """The usage between two times of one day, which are Unix seconds."""

    start: float
    end: float
    cpu: CollectedCpu
    """The CPU usage, weighted as if the day ended with the part."""
    peaks: Mapping[PodContainer, float]
    """The largest working set of each container in bytes."""
    kills: frozenset[PodContainer]
    """Containers that were killed because they were out of memory, in this part or shortly before."""
    running: frozenset[PodContainer]
    """The containers that run at the end of the part."""
    facts: ClusterFacts
    """The facts at the end of the part."""
    doubled: Mapping[SizedWorkload, PodContainer] = field(default_factory=dict)
    """By workload, a container whose series are left out because it has several."""


@dataclass(frozen=True, slots=True)
class OomKill:
    """A container that was killed because it was out of memory."""

    needs_bytes: float
    seen: float
    """The end of the part that showed the kill last, in Unix seconds."""


@dataclass(slots=True)
class KnownUsage:
    """The usage of one recommendation. Not thread-safe."""

    cpu: CollectedCpu
    """CPU histograms, which end with the current day of UTC."""
    peaks: dict[PodContainer, FloatArray] = field(default_factory=dict)
    """The measured peaks of each container by day, where index 0 is the current day; NaN where a peak is unknown.

    The container that was measured last is the last one."""
    kills: list[dict[PodContainer, OomKill]] = field(default_factory=list)
    """Kills by day, where index 0 is the current day."""
    covered: float = 0.0
    """Unix seconds up to which usage is known; 0 before the first part."""
    left_out: int = 0
    """The number of containers in the newest part for which there was no room."""
    running: frozenset[PodContainer] = frozenset()
    facts: ClusterFacts = field(default_factory=ClusterFacts)
    doubled: Mapping[SizedWorkload, PodContainer] = field(default_factory=dict)
    """By workload, a container that has several series in the newest part."""
    memory_seen: dict[SizedWorkload, float] = field(default_factory=dict)
    """When the memory of each workload was last measured, in Unix seconds, since this process started."""

    @classmethod
    def empty(cls, days: int) -> KnownUsage:
        """Return an empty usage that keeps `days` days, including the current one."""
        return cls(CollectedCpu.empty(ContainerRows((), {}), days, 0.0), kills=[{} for _ in range(days)])

    @property
    def days(self) -> int:
        """How many days are kept."""
        return self.cpu.histograms.weights.shape[0]

    def add(self, part: UsagePart) -> None:
        """Add a part that follows the earlier ones."""
        self._begin_day(math.ceil(part.end / DAY_SECONDS) * DAY_SECONDS)
        names = self._with_room(part.cpu.rows)
        self._add_cpu(part, names)
        self._add_memory(part)
        self.covered = part.end
        self.note_present(part)

    def note_present(self, part: UsagePart) -> None:
        """Note which containers exist at the end of a part whose usage may already be known."""
        self.running, self.facts, self.doubled = part.running, part.facts, part.doubled
        rows = part.cpu.rows
        measured = {rows.names[rows.places[pod]].workload for pod in part.running}
        kept = {name.workload for name in self.cpu.rows.names}
        self.memory_seen = {workload: at for workload, at in self.memory_seen.items() if workload in kept}
        self.memory_seen |= dict.fromkeys(measured, part.end)

    def sizes(self, options: SizingOptions) -> Iterator[SizeRecord]:
        """Yield the sizes of all containers that are still part of their workloads."""
        newest: dict[object, float] = {}
        for name, last in zip(self.cpu.rows.names, self.cpu.last, strict=True):
            newest[name.workload] = max(newest.get(name.workload, -math.inf), float(last))
        order = sorted(
            (name, row)
            for row, name in enumerate(self.cpu.rows.names)
            if self.cpu.last[row] >= newest[name.workload] - GONE_SECONDS
        )
        chosen: list[int] = []
        for _, rows in groupby(order, key=lambda item: item[0].workload):
            chosen += [row for _, row in rows]
            if len(chosen) >= _ROWS_AT_ONCE:
                yield from self._sizes_of(chosen, options)
                chosen = []
        if chosen:
            yield from self._sizes_of(chosen, options)

    def last_samples(self) -> dict[SizedWorkload, float]:
        """Return the time up to which both CPU and memory of each workload are known, in Unix seconds.

        A workload that lacks one of them is left out.
        """
        found: dict[SizedWorkload, float] = {}
        for name, last in zip(self.cpu.rows.names, self.cpu.last, strict=True):
            both = min(float(last), self.memory_seen.get(name.workload, -math.inf))
            if both > -math.inf:
                found[name.workload] = max(found.get(name.workload, both), both)
        return found

    def _sizes_of(self, chosen: list[int], options: SizingOptions) -> Iterator[SizeRecord]:
        place = {row: number for number, row in enumerate(chosen)}
        places = {pod: place[row] for pod, row in self.cpu.rows.places.items() if row in place}
        rows = ContainerRows(tuple(self.cpu.rows.names[row] for row in chosen), places)
        histograms = UsageHistograms(CPU_SCALE, 0, 0)
        histograms.weights = self.cpu.histograms.weights[:, chosen]
        picked = self.cpu
        cpu = CollectedCpu(
            histograms, picked.samples[chosen], picked.first[chosen], picked.last[chosen], picked.end, rows,
            picked.measured[:, chosen],
        )  # fmt: skip
        pods = tuple(pod for pod in places if pod in self.peaks)
        peaks = np.array([self.peaks[pod] for pod in pods]).reshape(len(pods), self.days).T
        column = {pod: number for number, pod in enumerate(pods)}
        kills: Counter[PodContainer] = Counter()
        floors = np.zeros(len(chosen))
        for number, day in enumerate(self.kills):
            for pod, kill in day.items():
                if pod in places:
                    kills[pod] += 1
                    floors[places[pod]] = max(floors[places[pod]], kill.needs_bytes)
                if pod in column:
                    peaks[number, column[pod]] = np.fmax(peaks[number, column[pod]], kill.needs_bytes)
        records = size_records(
            cpu, MemoryPeaks(pods, peaks, is_newest_partial=True), self.running, kills, self.facts, options
        )
        yield from (_at_least(record, float(floor)) for record, floor in zip(records, floors, strict=True))

    def _begin_day(self, end: float) -> None:
        """Make room for the day that ends at `end`, and forget containers that only appear in days that are too old."""
        passed = self.days if not self.cpu.end else round((end - self.cpu.end) / DAY_SECONDS)
        if passed <= 0:
            return
        kept = max(self.days - passed, 0)
        self.cpu.begin_days(passed, end)
        self.kills = [*({} for _ in range(self.days - kept)), *self.kills[:kept]]
        for pod, peaks in self.peaks.items():
            self.peaks[pod] = np.concatenate([np.full(self.days - kept, np.nan), peaks[:kept]])
        killed = {pod for day in self.kills for pod in day}
        self.peaks = {pod: peaks for pod, peaks in self.peaks.items() if pod in killed or np.isfinite(peaks).any()}
        self._keep_rows(np.flatnonzero(self.cpu.histograms.weights.any(axis=(0, 2))))

    def _keep_rows(self, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        """Keep only `rows`, and of their pods only those that still have a peak."""
        place = {int(row): number for number, row in enumerate(rows)}
        cpu = self.cpu
        places = {pod: place[row] for pod, row in cpu.rows.places.items() if row in place and pod in self.peaks}
        cpu.keep(rows, ContainerRows(tuple(cpu.rows.names[int(row)] for row in rows), places))
        self.peaks = {pod: peaks for pod, peaks in self.peaks.items() if pod in places}
        self.kills = [{pod: kill for pod, kill in day.items() if pod in places} for day in self.kills]

    def _make_room(self, present: Collection[WorkloadContainer]) -> None:
        """Forget ended containers if they and the current ones are too many: those of each namespace that ended first.

        Otherwise workloads whose names are new ones each day would take the places of those that run.
        """
        names, there = self.cpu.rows.names, set(present)
        ended = [row for row, name in enumerate(names) if name not in there]
        room = max(0, MOST_CONTAINERS - len(there))
        if len(ended) > room:
            ended.sort(key=lambda row: -self.cpu.last[row])
            gone = set(in_rounds(ended, lambda row: names[row].workload.namespace)[room:])
            self._keep_rows(np.array([row for row in range(len(names)) if row not in gone], dtype=np.int64))

    def _with_room(self, rows: ContainerRows) -> dict[WorkloadContainer, int]:
        """Return the row of each name; new names get new rows as long as there is room, the namespaces in turn."""
        self._make_room(rows.names)
        known = {name: row for row, name in enumerate(self.cpu.rows.names)}
        new = [name for name in rows.names if name not in known]
        self.left_out = max(0, len(known) + len(new) - MOST_CONTAINERS)
        new = in_rounds(new, lambda name: name.workload.namespace)[: len(new) - self.left_out]
        cpu = self.cpu
        places = dict(cpu.rows.places)
        names = (*cpu.rows.names, *new)
        known |= {name: len(known) + number for number, name in enumerate(new)}
        for pod, row in rows.places.items():
            if (name := rows.names[row]) in known:
                places[pod] = known[name]
        if new:
            cpu.extend(ContainerRows(names, places))
        else:
            cpu.rows = ContainerRows(names, places)
        return known

    def _add_cpu(self, part: UsagePart, known: Mapping[WorkloadContainer, int]) -> None:
        theirs = [row for row, name in enumerate(part.cpu.rows.names) if name in known]
        ours = [known[part.cpu.rows.names[row]] for row in theirs]
        cpu = self.cpu
        # The part's samples weigh as if the day ended with the part.
        weight = np.float32(2.0 ** (-(cpu.end - part.end) / HALF_LIFE_SECONDS))
        cpu.histograms.weights[0, ours] += part.cpu.histograms.weights[0, theirs] * weight
        cpu.measured[0, ours] += part.cpu.measured[0, theirs]
        cpu.samples[ours] += part.cpu.samples[theirs]
        cpu.first[ours] = np.minimum(cpu.first[ours], part.cpu.first[theirs])
        cpu.last[ours] = np.maximum(cpu.last[ours], part.cpu.last[theirs])

    def _add_memory(self, part: UsagePart) -> None:
        places, requests = self.cpu.rows.places, part.facts.requests.get(MEMORY, {})
        for pod, peak in part.peaks.items():
            if pod in places and 0 < peak < MOST_BYTES:
                self._raise_peak(pod, peak)
        for pod in part.kills:
            if pod in places:
                self._note_kill(pod, requests.get(pod, 0.0), part.end)
        surplus = len(self.peaks) - MOST_PODS
        if surplus > 0:
            oldest = sorted(self.peaks, key=lambda pod: int(np.isfinite(self.peaks[pod]).argmax()), reverse=True)
            for pod in oldest[:surplus]:
                del self.peaks[pod]

    def _note_kill(self, pod: PodContainer, request: float, seen: float) -> None:
        before = self.kills[0].get(pod) or (self.kills[1].get(pod) if self.days > 1 else None)
        if before is not None and seen - before.seen <= SAME_KILL_SECONDS:
            return
        # Only measured memory counts: if the needs of former kills counted, each kill would need more than the last.
        # A kill that is seen just after midnight may be of the day before.
        days = 2 if seen - SAME_KILL_SECONDS <= self.cpu.end - DAY_SECONDS else 1
        peak = float(np.nan_to_num(self._peaks_of(pod)[:days]).max())
        needed = float(memory_after_oom(np.array([peak]), np.array([request]))[0])
        earlier = self.kills[0].get(pod)
        self.kills[0][pod] = OomKill(needed if earlier is None else max(needed, earlier.needs_bytes), seen)

    def _raise_peak(self, pod: PodContainer, peak: float) -> None:
        known = self._peaks_of(pod)
        known[0] = np.fmax(known[0], peak)
        self.peaks[pod] = self.peaks.pop(pod)

    def _peaks_of(self, pod: PodContainer) -> FloatArray:
        return self.peaks.setdefault(pod, np.full(self.days, np.nan))


def _at_least(record: SizeRecord, needed_bytes: float) -> SizeRecord:
    """Return the record with at least `needed_bytes` of memory: a percentile of many pods hides a killed one."""
    if not needed_bytes or record.memory is None:
        return record
    needed = math.ceil(needed_bytes / MEBIBYTE) * MEBIBYTE
    target = max(record.memory.target, needed)
    return replace(record, memory=replace(record.memory, target=target, upper=max(record.memory.upper, target)))
