"""Determines which containers belong to which workloads, and their CPU usage."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.resources.usage import CollectedCpu, ContainerRows, UsageSamples
from recommender.kinds.resources.workloads import PodContainer, WorkloadContainer
from recommender.running.usage.prometheus_vectors import doubled_containers, in_turn, matrix

if TYPE_CHECKING:
    from recommender.running.usage.cluster_history import ClusterHistory, ClusterReader
    from recommender.running.usage.usage_window import TimeSlice


def workload_containers(history: ClusterHistory) -> dict[PodContainer, WorkloadContainer]:
    """Return the workload and container name of each container whose workload is certain, without init containers."""
    found: dict[PodContainer, WorkloadContainer] = {}
    for pod in {*history.memory.pods, *history.running} - history.facts.init_containers:
        workload = history.facts.owners.workload_of(pod.of_pod)
        if workload is not None:
            found[pod] = WorkloadContainer(workload, pod.container)
    # An init container is known as such only while its pod exists; later, newer pods with the same name show it.
    inits = {
        WorkloadContainer(workload, pod.container)
        for pod in history.facts.init_containers
        if (workload := history.facts.owners.workload_of(pod.of_pod)) is not None
    }
    return {pod: row for pod, row in found.items() if row not in inits}


def read_cpu(
    reader: ClusterReader, rows: ContainerRows, query: str, step_seconds: int, *, is_overridden: bool = False
) -> CollectedCpu:
    """Return the CPU usage of the rows in the window of the reader. Raises PrometheusError.

    `is_overridden` means that the query is not a built-in one.
    """
    window = reader.window
    collected = CollectedCpu.empty(rows, window.days, window.end, step_seconds)
    ask = partial(ask_slice, reader, query, step_seconds, is_overridden=is_overridden)
    for day, samples in in_turn(ask, window.slices(len(rows.places), step_seconds)):
        collected.add(day, samples)
    return collected


def ask_slice(
    reader: ClusterReader, query: str, step_seconds: int, asked: TimeSlice, *, is_overridden: bool = False
) -> tuple[int, list[UsageSamples]]:
    """Return the day of a slice, and the samples of each container in it. Raises PrometheusError."""
    answer = matrix(reader.client, query, asked.start, asked.end, step_seconds, is_overridden=is_overridden)
    found = [
        UsageSamples(
            PodContainer(
                series.labels.get("namespace", ""), series.labels.get("pod", ""), series.labels.get("container", "")
            ),
            np.frombuffer(series.timestamps),
            np.frombuffer(series.values),
        )
        for series in answer.series
    ]
    doubled = doubled_containers(query, (each.pod for each in found))
    reader.doubled.update(doubled)
    return asked.day, [each for each in found if each.pod not in doubled]
