"""Computes sizes of containers from their usage, their requests and their limits (pure)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.objects.durations import format_duration
from recommender.kinds.resources.bounds import (
    POD_MINIMUM_BYTES,
    POD_MINIMUM_CORES,
    SHORTEST_HISTORY_SECONDS,
    RequestBounds,
    SizeSettings,
    bounds_of,
    confidences,
    minimum_of,
)
from recommender.kinds.resources.histograms import DAY_SECONDS
from recommender.kinds.resources.oom_kills import memory_after_oom
from recommender.kinds.resources.size_record import ResourceSize, SizeRecord, SizeStatus
from recommender.kinds.resources.workloads import CPU, MEMORY, ClusterFacts, PodContainer, SizedWorkload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from recommender.kinds.resources.histograms import FloatArray
    from recommender.kinds.resources.usage import CollectedCpu, MemoryPeaks
    from recommender.kinds.resources.workloads import WorkloadContainer

MEBIBYTE: Final = 2**20
_UNITS: Final = {CPU: 0.001, MEMORY: 1.0}
"""The units of the whole numbers in records, millicores and bytes, expressed in Prometheus's units."""
_STEPS: Final = {CPU: 1, MEMORY: MEBIBYTE}
"""The steps to which sizes are rounded up, in the unit of records."""
BYTES_LIKE_A_CORE: Final = 8 * 2**30
"""The memory that counts as much as one core when savings are compared."""


@dataclass(frozen=True, slots=True)
class SizingOptions:
    """How sizes are computed, and for whom they are only information."""

    settings: SizeSettings = field(default_factory=SizeSettings)
    also_with_hpa: bool = False
    step_seconds: float = 300.0
    """The step between samples of CPU."""
    rate_seconds: float = 300.0
    """The range over which the rate of each CPU sample is computed."""


@dataclass(frozen=True, slots=True)
class _Row:
    """The pods that run the container of a row now, and how long its usage has been measured."""

    number: int
    pods: tuple[PodContainer, ...]
    oom_kills: int
    history_seconds: float
    memory_history_seconds: float
    measured_seconds: float
    samples: int
    """The number of its samples of CPU."""


def memory_lifespans(cpu: CollectedCpu, memory: MemoryPeaks, lifespans: FloatArray) -> FloatArray:
    """Return for how long the memory of each row has been measured: `lifespans`, which are those of CPU, if it may be.

    Otherwise, memory has certainly been measured since the end of the first day with a peak. That only matters if it is
    less than a day. It is at least an hour, since a bound that follows from less would not be a number of bytes.
    """
    first = memory.first_days(cpu.rows)
    sure = cpu.last - (cpu.end - first * DAY_SECONDS)
    is_short = (first >= 0) & (sure < DAY_SECONDS) & (cpu.first < cpu.end - (first + 1) * DAY_SECONDS)
    return np.where(is_short, np.minimum(np.maximum(sure, SHORTEST_HISTORY_SECONDS), lifespans), lifespans)


def size_records(
    cpu: CollectedCpu,
    memory: MemoryPeaks,
    running: Iterable[PodContainer],
    kills: Counter[PodContainer],
    facts: ClusterFacts,
    options: SizingOptions,
) -> list[SizeRecord]:
    """Return the record of each row of `cpu`. `memory` has the peaks after kills, and `kills` counts the kills."""
    rows = cpu.rows
    containers = Counter(name.workload for name in rows.names)
    counts = np.array([containers[name.workload] for name in rows.names], dtype=np.int64)
    lifespans = np.maximum(cpu.last - cpu.first + options.rate_seconds, 0.0)
    samples = cpu.samples.astype(np.float64)
    of_memory = memory_lifespans(cpu, memory, lifespans)
    confidence, memory_confidence = (
        np.maximum(confidences(each, samples, options.step_seconds), 1e-9) for each in (lifespans, of_memory)
    )
    settings = options.settings
    bounds = {
        CPU: bounds_of(cpu.histograms, confidence, settings, minimum_of(POD_MINIMUM_CORES, counts)),
        MEMORY: bounds_of(
            memory.histograms(rows),
            memory_confidence,
            settings,
            minimum_of(POD_MINIMUM_BYTES, counts),
            memory.swings(rows) if settings.percentile is None else None,
        ),
    }
    found = _rows(cpu, lifespans, of_memory, running, kills)
    return [_record(name, row, facts, options, bounds) for name, row in zip(rows.names, found, strict=True)]


def _rows(
    cpu: CollectedCpu,
    lifespans: FloatArray,
    memory_lifespans: FloatArray,
    running: Iterable[PodContainer],
    kills: Counter[PodContainer],
) -> Iterator[_Row]:
    pods: list[list[PodContainer]] = [[] for _ in cpu.rows.names]
    killed = [0] * len(pods)
    for pod in running:
        row = cpu.rows.places.get(pod)
        if row is not None:
            pods[row].append(pod)
    for pod, count in kills.items():
        row = cpu.rows.places.get(pod)
        if row is not None:
            killed[row] += count
    history = (lifespans.tolist(), memory_lifespans.tolist(), cpu.measured.sum(axis=0).tolist(), cpu.samples.tolist())
    yield from map(_Row, range(len(pods)), map(tuple, pods), killed, *history)


def _record(
    name: WorkloadContainer,
    row: _Row,
    facts: ClusterFacts,
    options: SizingOptions,
    bounds: Mapping[str, RequestBounds],
) -> SizeRecord:
    problem = _problem(bounds[MEMORY], row)
    held = "" if options.also_with_hpa else _reason_to_hold(facts, name.workload)
    sizes: dict[str, ResourceSize] = {}
    if not problem:
        sizes = {resource: _size(resource, found, facts, row, saves=not held) for resource, found in bounds.items()}
    return SizeRecord(
        workload=name.workload,
        container=name.container,
        status=SizeStatus.ERROR if problem else SizeStatus.HELD if held else SizeStatus.OK,
        message=problem or held or _message(facts, row),
        replicas=len(row.pods),
        history_seconds=row.history_seconds if row.samples else 0.0,
        samples=row.samples,
        oom_kills=row.oom_kills,
        cpu=sizes.get(CPU),
        memory=sizes.get(MEMORY),
        memory_history_seconds=row.memory_history_seconds,
        measured_seconds=row.measured_seconds,
    )


def _problem(memory: RequestBounds, row: _Row) -> str:
    """Return why there is no size; empty if there is one."""
    if not row.samples:
        return "the usage of CPU is unknown: container_cpu_usage_seconds_total has no usable samples of this container"
    if row.history_seconds < SHORTEST_HISTORY_SECONDS:
        return f"only {format_duration(round(row.history_seconds))} of history: at least an hour is needed"
    if np.isnan(memory.target[row.number]):
        return (
            "the usage of memory is unknown: container_memory_working_set_bytes has no usable samples of this container"
        )
    return ""


def _reason_to_hold(facts: ClusterFacts, workload: SizedWorkload) -> str:
    """Return why the requests stay unchanged; empty if they may change."""
    autoscaler = facts.autoscalers.get(workload)
    if autoscaler is None:
        return ""
    return (
        f"requests stay: the HorizontalPodAutoscaler {autoscaler.name} follows {' and '.join(autoscaler.resources)}, "
        "and other requests change what it calculates; --also-with-hpa sizes it nevertheless"
    )


def _message(facts: ClusterFacts, row: _Row) -> str:
    notes = []
    for resource in (CPU, MEMORY):
        stated = facts.requests.get(resource, {})
        if len({stated.get(pod) for pod in row.pods}) > 1:
            notes.append(f"requests of {resource} differ between pods, the largest is shown")
    if row.oom_kills:
        notes.append("killed because it was out of memory: memory is raised above its peak and its request")
    return "; ".join(notes)


def _size(resource: str, bounds: RequestBounds, facts: ClusterFacts, row: _Row, *, saves: bool) -> ResourceSize:
    number = row.number
    request, limit = (_stated_request(resource, stated, row.pods) for stated in (facts.requests, facts.limits))
    target = _rounded_up(resource, bounds.target[number])
    # Without a request, nothing is reserved now; without the metric, that is unknown.
    reserved = request or 0
    return ResourceSize(
        request=request,
        limit=limit,
        lower=min(_rounded_up(resource, bounds.lower[number]), target),
        target=target,
        upper=max(_rounded_up(resource, bounds.upper[number]), target),
        low=None if np.isnan(bounds.low[number]) else _rounded_up(resource, bounds.low[number]),
        high=None if np.isnan(bounds.high[number]) else _rounded_up(resource, bounds.high[number]),
        recommended_limit=_limit(limit, request, target, killed=resource == MEMORY and row.oom_kills > 0),
        saves=len(row.pods) * (reserved - target) if saves and resource in facts.requests else None,
    )


def _stated_request(
    resource: str, stated: Mapping[str, Mapping[PodContainer, float]], pods: Iterable[PodContainer]
) -> int | None:
    found = stated.get(resource, {})
    amounts = [found[pod] for pod in pods if pod in found]
    return round(max(amounts) / _UNITS[resource]) if amounts else None


def _rounded_up(resource: str, value: float) -> int:
    step = _STEPS[resource]
    # A billionth is subtracted: 0.115 cores are 115 milli, although 0.115 / 0.001 is a little more.
    return math.ceil(value / _UNITS[resource] / step * (1 - 1e-9)) * step


def _limit(limit: int | None, request: int | None, target: int, *, killed: bool) -> int | None:
    """Return a limit that covers the request and that a killed container does not reach at once; None to keep it.

    A limit below the new request rises in proportion to it, as with the Vertical Pod Autoscaler.
    """
    if limit is None:
        return None
    needed = limit
    if target > limit:
        needed = max(target, math.ceil(limit * target / request)) if request else target
    if killed:
        raised = float(memory_after_oom(np.array([float(limit)]), np.zeros(1))[0])
        needed = max(needed, math.ceil(raised / MEBIBYTE) * MEBIBYTE)
    return needed if needed > limit else None


def savings_key(record: SizeRecord) -> float:
    """Return the cores that a record saves, with `BYTES_LIKE_A_CORE` as one core; unknown savings come last."""
    if record.cpu is None or record.memory is None or record.cpu.saves is None or record.memory.saves is None:
        return -math.inf
    return record.cpu.saves / 1000 + record.memory.saves / BYTES_LIKE_A_CORE
