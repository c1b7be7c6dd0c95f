"""Reads the sizes of all containers from Prometheus, a few namespaces at a time to limit the use of memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.counts import count_of
from recommender.kinds.resources.oom_kills import peaks_after_kills
from recommender.kinds.resources.size_record import SizeRecord, SizeStatus
from recommender.kinds.resources.sizing import SizingOptions, savings_key, size_records
from recommender.kinds.resources.usage import ContainerRows, MemoryPeaks
from recommender.kinds.resources.workloads import MEMORY, PodContainer, SizedWorkload, WorkloadContainer
from recommender.running.usage import usage_queries
from recommender.running.usage.container_usage import read_cpu, workload_containers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from recommender.running.usage.cluster_history import ClusterHistory, ClusterReader
    from recommender.running.usage.usage_queries import Resolution
    from recommender.running.usage.usage_window import SizeWindow

SERIES_AT_ONCE: Final = 5_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a cluster."""

    window: SizeWindow
    options: SizingOptions
    records: tuple[SizeRecord, ...]
    """The records, largest savings first; records without a size come last."""
    missing: tuple[str, ...]
    """Sentences about unknown facts, with their consequences."""
    pods: Mapping[SizedWorkload, tuple[str, ...]]
    """The names of all pods that each workload had."""


def read_sizes(
    reader: ClusterReader,
    history: ClusterHistory,
    options: SizingOptions,
    resolution: Resolution,
    wanted: Callable[[SizedWorkload], bool] = lambda _workload: True,
) -> Sizes:
    """Return the sizes of the wanted workloads that have a pod at the end. Raises PrometheusError."""
    owned = workload_containers(history)
    chosen = chosen_containers(history, wanted)
    memory = MemoryPeaks(
        history.memory.pods,
        peaks_after_kills(history.memory, history.kills, history.facts.requests.get(MEMORY, {})),
    )
    records: list[SizeRecord] = []
    for namespaces in namespace_groups(chosen, SERIES_AT_ONCE):
        rows = ContainerRows.of({pod: row for pod, row in chosen.items() if pod.namespace in namespaces})
        query = usage_queries.cpu_usage(usage_queries.namespace_matcher(namespaces), resolution.rate_seconds)
        cpu = read_cpu(reader, rows, query, resolution.step_seconds)
        records += size_records(cpu, _only(memory, rows), history.running, history.kill_counts, history.facts, options)
    records += [
        _conflict(pod) for pod in history.running if pod not in owned and pod not in history.facts.init_containers
        and wanted(SizedWorkload(pod.namespace, "Pod", pod.pod))
    ]  # fmt: skip
    gone = {row.workload for row in owned.values()} - {owned[pod].workload for pod in history.running if pod in owned}
    missing = history.facts.missing
    if gone:
        missing += (f"left out, as they have no running pod now: {count_of(len(gone), 'workload')} of the history",)
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


def chosen_containers(
    history: ClusterHistory, wanted: Callable[[SizedWorkload], bool]
) -> dict[PodContainer, WorkloadContainer]:
    """Return the containers of the wanted workloads that have a pod at the end."""
    owned = workload_containers(history)
    present = {owned[pod].workload for pod in history.running if pod in owned}
    return {pod: row for pod, row in owned.items() if row.workload in present and wanted(row.workload)}


def namespace_groups(chosen: Mapping[PodContainer, WorkloadContainer], most: int) -> Iterator[frozenset[str]]:
    """Yield groups of namespaces that together have at most `most` containers, or a single namespace with more."""
    counts = Counter(pod.namespace for pod in chosen)
    group: set[str] = set()
    series = 0
    for namespace, count in sorted(counts.items()):
        if group and series + count > most:
            yield frozenset(group)
            group, series = set(), 0
        group.add(namespace)
        series += count
    if group:
        yield frozenset(group)


def _only(memory: MemoryPeaks, rows: ContainerRows) -> MemoryPeaks:
    """Return the peaks of the rows' containers."""
    places = [place for place, pod in enumerate(memory.pods) if pod in rows.places]
    return MemoryPeaks(tuple(memory.pods[place] for place in places), memory.peaks[:, places])


def _conflict(pod: PodContainer) -> SizeRecord:
    return SizeRecord(
        workload=SizedWorkload(pod.namespace, "Pod", pod.pod),
        container=pod.container,
        status=SizeStatus.ERROR,
        message="the pod has several owners, so its series seem to come from several clusters: "
        "choose one with --prometheus-matchers",
        replicas=1,
        history_seconds=0.0,
        samples=0,
        oom_kills=0,
        cpu=None,
        memory=None,
    )
