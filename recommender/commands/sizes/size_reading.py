"""The sizes of all containers from Prometheus, some namespaces at a time: memory does not grow with the cluster."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.commands.sizes import size_queries
from recommender.commands.sizes.prometheus_vectors import in_turn, matrix
from recommender.kinds.resources.size_record import SizeRecord, SizeStatus
from recommender.kinds.resources.sizing import peaks_after_kills, savings_key, size_records
from recommender.kinds.resources.usage import CollectedCpu, ContainerRows, CpuSamples, MemoryPeaks
from recommender.kinds.resources.workloads import MEMORY, PodContainer, SizedWorkload, WorkloadContainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from recommender.commands.sizes.cluster_history import ClusterHistory, ClusterReader
    from recommender.commands.sizes.size_queries import Resolution
    from recommender.commands.sizes.size_window import SizeWindow, TimeSlice
    from recommender.kinds.resources.sizing import SizingOptions

SERIES_AT_ONCE: Final = 5_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a cluster."""

    window: SizeWindow
    options: SizingOptions
    records: tuple[SizeRecord, ...]
    """What saves most first; what has no size last."""
    missing: tuple[str, ...]
    """What is unknown, with its consequence."""
    pods: Mapping[SizedWorkload, tuple[str, ...]]
    """The names of all pods that each workload had."""


def read_sizes(
    reader: ClusterReader,
    history: ClusterHistory,
    options: SizingOptions,
    resolution: Resolution,
    wanted: Callable[[SizedWorkload], bool] = lambda _workload: True,
) -> Sizes:
    """Return the sizes of the workloads that are wanted and have a pod at the end. Raises PrometheusError."""
    owned = _workload_containers(history)
    present = {owned[pod].workload for pod in history.running if pod in owned}
    chosen = {pod: row for pod, row in owned.items() if row.workload in present and wanted(row.workload)}
    memory = MemoryPeaks(
        history.memory.pods,
        peaks_after_kills(history.memory, history.kills, history.facts.requests.get(MEMORY, {})),
    )
    records: list[SizeRecord] = []
    for namespaces in _groups(chosen):
        rows = ContainerRows.of({pod: row for pod, row in chosen.items() if pod.namespace in namespaces})
        cpu = _read_cpu(reader, rows, resolution, size_queries.namespace_matcher(namespaces))
        records += size_records(cpu, _only(memory, rows), history.running, history.kill_counts, history.facts, options)
    records += [
        _conflict(pod) for pod in history.running if pod not in owned and pod not in history.facts.init_containers
        and wanted(SizedWorkload(pod.namespace, "Pod", pod.pod))
    ]  # fmt: skip
    gone = {row.workload for row in owned.values()} - present
    missing = history.facts.missing
    if gone:
        missing += (f"left out, as they have no running pod now: {len(gone)} workloads of the history",)
    pods: dict[SizedWorkload, set[str]] = {}
    for pod, row in chosen.items():
        pods.setdefault(row.workload, set()).add(pod.pod)
    return Sizes(
        reader.window,
        options,
        tuple(sorted(records, key=lambda record: (-savings_key(record), record.workload, record.container))),
        missing,
        {workload: tuple(sorted(names)) for workload, names in pods.items()},
    )


def _workload_containers(history: ClusterHistory) -> dict[PodContainer, WorkloadContainer]:
    """Return the row of each container whose workload is certain; init containers have none."""
    found: dict[PodContainer, WorkloadContainer] = {}
    for pod in {*history.memory.pods, *history.running} - history.facts.init_containers:
        workload = history.facts.owners.workload_of(pod.of_pod)
        if workload is not None:
            found[pod] = WorkloadContainer(workload, pod.container)
    # An init container is known as such only while its pod exists; the same name in newer pods tells.
    inits = {
        WorkloadContainer(workload, pod.container)
        for pod in history.facts.init_containers
        if (workload := history.facts.owners.workload_of(pod.of_pod)) is not None
    }
    return {pod: row for pod, row in found.items() if row not in inits}


def _groups(chosen: Mapping[PodContainer, WorkloadContainer]) -> Iterator[frozenset[str]]:
    """Yield namespaces that together have about `SERIES_AT_ONCE` containers, or one namespace that has more."""
    counts = Counter(pod.namespace for pod in chosen)
    group: set[str] = set()
    series = 0
    for namespace, count in sorted(counts.items()):
        if group and series + count > SERIES_AT_ONCE:
            yield frozenset(group)
            group, series = set(), 0
        group.add(namespace)
        series += count
    if group:
        yield frozenset(group)


def _read_cpu(reader: ClusterReader, rows: ContainerRows, resolution: Resolution, where: str) -> CollectedCpu:
    window, step = reader.window, resolution.step_seconds
    collected = CollectedCpu.empty(rows, window.days, window.end)
    ask = partial(_ask_slice, reader, size_queries.cpu_usage(where, resolution.rate_seconds), step)
    for day, samples in in_turn(ask, window.slices(len(rows.places), step)):
        collected.add(day, samples)
    return collected


def _ask_slice(reader: ClusterReader, query: str, step: int, asked: TimeSlice) -> tuple[int, list[CpuSamples]]:
    answer = matrix(reader.client, query, asked.start, asked.end, step)
    return asked.day, [
        CpuSamples(
            PodContainer(
                series.labels.get("namespace", ""), series.labels.get("pod", ""), series.labels.get("container", "")
            ),
            np.frombuffer(series.timestamps),
            np.frombuffer(series.values),
        )
        for series in answer.series
    ]


def _only(memory: MemoryPeaks, rows: ContainerRows) -> MemoryPeaks:
    """Return the peaks of the rows' containers."""
    places = [place for place, pod in enumerate(memory.pods) if pod in rows.places]
    return MemoryPeaks(tuple(memory.pods[place] for place in places), memory.peaks[:, places])


def _conflict(pod: PodContainer) -> SizeRecord:
    return SizeRecord(
        workload=SizedWorkload(pod.namespace, "Pod", pod.pod),
        container=pod.container,
        status=SizeStatus.ERROR,
        message="the pod has several owners, as if its series were of several clusters: "
        "choose one with --prometheus-matchers",
        replicas=1,
        history_seconds=0.0,
        samples=0,
        oom_kills=0,
        cpu=None,
        memory=None,
    )
