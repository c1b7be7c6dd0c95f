"""The number of pods of each recorded workload over time, which a replayed forecast uses as the load. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from recommender.kinds.predictive.history import LoadHistory
from recommender.kinds.predictive.predictive_settings import FOR_EACH_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.replay.cluster.replay_facts import Scene

STEP_SECONDS: Final = 300.0
NO_WORKLOAD: Final = -1
Workload: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""

_HASH: Final = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{6,10}$")
"""The suffix by which a Deployment's ReplicaSet is recognised: labels, which would be certain, are not recorded."""


@dataclass(frozen=True, slots=True)
class WorkloadCounts:
    """The pods of each workload, step by step."""

    workloads: tuple[Workload, ...]
    of_kind: IntArray
    """For each kind of pod, the index of its workload, or `NO_WORKLOAD`."""
    history: LoadHistory
    """The largest number of pods within each step; the time of a step is its end."""

    def among(self, places: Sequence[int]) -> WorkloadCounts:
        """Return the counts of only these workloads."""
        renamed = np.full(len(self.workloads) + 1, NO_WORKLOAD, dtype=np.int64)
        renamed[list(places)] = np.arange(len(places))
        chosen = LoadHistory(self.history.start_seconds, self.history.step_seconds, self.history.values[list(places)])
        return WorkloadCounts(tuple(self.workloads[place] for place in places), renamed[self.of_kind], chosen)


def workload_counts(scene: Scene) -> WorkloadCounts:
    """Return the counts of replayed pods for all workloads whose number of pods can be forecast."""
    recording = scene.recording
    names = [
        workload_of(kind) if is_replayed else None
        for kind, is_replayed in zip(recording.pod_kinds, scene.replayed, strict=True)
    ]
    workloads = tuple(sorted({name for name in names if name is not None}))
    places = {name: place for place, name in enumerate(workloads)}
    of_kind = np.array([NO_WORKLOAD if name is None else places[name] for name in names], dtype=np.int64)
    changes: list[list[tuple[float, int]]] = [[] for _ in workloads]
    for pod in recording.pods:
        place = of_kind.item(pod.kind)
        if place == NO_WORKLOAD or (pod.gone is not None and pod.gone <= recording.start):
            continue
        changes[place].append((max(pod.created, recording.start), 1))
        if pod.gone is not None and pod.gone < recording.end:
            changes[place].append((pod.gone, -1))
    steps = int(recording.seconds // STEP_SECONDS)
    values = np.zeros((len(workloads), steps))
    for row, each in zip(values, changes, strict=True):
        if each:
            row[:] = _largest_by_step(each, recording.start, steps)
    return WorkloadCounts(workloads, of_kind, LoadHistory(recording.start + STEP_SECONDS, STEP_SECONDS, values))


def workload_of(kind: ClusterPod) -> Workload | None:
    """Return the workload of pods of a kind; None for pods of Jobs or DaemonSets, and pods without a controller."""
    owner = kind.controller
    if owner is None or owner.kind not in FOR_EACH_KINDS:
        return None
    deployment = _HASH.sub("", owner.name) if owner.kind == "ReplicaSet" else owner.name
    return (owner.kind if deployment == owner.name else "Deployment"), kind.namespace, deployment


def _largest_by_step(changes: Sequence[tuple[float, int]], start: float, steps: int) -> FloatArray:
    """Return the largest number within each step; of changes at the same moment, ends count before starts."""
    times, deltas = np.array(sorted(changes)).T
    counts = np.cumsum(deltas)
    ends = start + STEP_SECONDS * np.arange(1, steps + 1)
    last = np.searchsorted(times, ends, side="right") - 1
    at_end = np.where(last >= 0, counts[np.maximum(last, 0)], 0.0)
    largest = np.maximum(at_end, np.concatenate([[0.0], at_end[:-1]]))
    places = np.clip(np.ceil((times - start) / STEP_SECONDS).astype(np.int64) - 1, 0, None)
    is_whole = places < steps
    np.maximum.at(largest, places[is_whole], counts[is_whole])
    return np.asarray(largest)
