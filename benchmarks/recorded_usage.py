"""Usage of containers as cAdvisor would show it, derived from recorded load and from the pods of a recorded cluster.

No public recording has the usage of containers with daily seasons. So CPU follows recorded requests, and memory follows
the connections that those requests would hold open. Containers are as large as the requests of pods in the GPU trace.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.recorded_traces import RECORDINGS, TraceMissingError
from benchmarks.sized_workloads import STEP_SECONDS, STEPS_PER_DAY, MadeUsage

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.recorded_traces import Recording
    from recommender.kinds.resources.histograms import FloatArray

GPU_PODS: Final = "gpu/openb_pod_list_default.csv"
_LOADS: Final = ("nasa-zero", "world-cup", "nyc-taxi")
"""Requests and passengers; the other recordings are shorter than the history of KRR, or have gaps of days."""
_STARTS_PER_LOAD: Final = 8
_MOST_SESSION_STEPS: Final = 144
_MEBIBYTE: Final = 2.0**20


@dataclass(frozen=True, slots=True)
class _PodRequests:
    """The requests of the pods of a recorded cluster."""

    cores: FloatArray
    memory: FloatArray


def recorded_usage(folder: Path, containers: int, days: int, seed: int) -> MadeUsage:
    """Return usage of containers that follow windows of the recorded loads, in turn. Raises TraceMissingError."""
    random = np.random.default_rng(seed)
    pods = _gpu_pods(folder / GPU_PODS)
    windows = [each for recording in _recordings(folder) for each in _windows(recording, folder, days)]
    if not windows:
        raise TraceMissingError(f"no recorded load in {folder} has {days} days")
    pairs = [_container(windows[number % len(windows)], pods, random) for number in range(containers)]
    return MadeUsage(
        np.array([cores for cores, _ in pairs]),
        np.maximum(np.array([memory for _, memory in pairs]), _MEBIBYTE),
        ("recorded",) * containers,
    )


def _recordings(folder: Path) -> list[Recording]:
    found = [each for each in RECORDINGS if each.name in _LOADS]
    for each in found:
        if not (folder / each.file).is_file():
            raise TraceMissingError(f"{folder / each.file} is missing (published by {each.origin})")
    return found


def _gpu_pods(path: Path) -> _PodRequests:
    try:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    except OSError as error:
        origin = "published in hkust-adsl/kubernetes-scheduler-simulator"
        raise TraceMissingError(f"{path} cannot be read: {error.strerror} ({origin})") from error
    return _PodRequests(
        np.array([float(row["cpu_milli"]) / 1000 for row in rows]),
        np.array([float(row["memory_mib"]) * _MEBIBYTE for row in rows]),
    )


def _windows(recording: Recording, folder: Path, days: int) -> list[FloatArray]:
    """Return parts of a load that begin on different days, each with a mean of 1."""
    history = recording.read(folder)
    load, known = history.values.sum(axis=0), np.isfinite(history.values).all(axis=0)
    times = np.arange(len(load)) * history.step_seconds
    grid = np.arange(0.0, times[-1], STEP_SECONDS)
    # Finer recordings are averaged, and coarser ones are interpolated.
    finer = max(1, round(STEP_SECONDS / history.step_seconds))
    smooth = np.convolve(np.where(known, load, 0.0), np.full(finer, 1 / finer), mode="full")[: len(load)]
    values = np.interp(grid, times[known], smooth[known])
    length = days * STEPS_PER_DAY
    last = (len(values) - length) // STEPS_PER_DAY
    starts = sorted({round(at) for at in np.linspace(0, last, _STARTS_PER_LOAD)}) if last >= 0 else []
    parts = [values[at * STEPS_PER_DAY :][:length] for at in starts]
    return [np.asarray(part / part.mean()) for part in parts if part.mean() > 0]


def _container(load: FloatArray, pods: _PodRequests, random: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return the cores and bytes of a container with this load: a constant part, and a part that follows the load."""
    pod = random.integers(len(pods.cores))
    cores = 0.3 * pods.cores[pod] * (0.1 + 0.9 * load) * np.exp(random.normal(0.0, 0.05, len(load)))
    held = _open_connections(load, random.uniform(3, _MOST_SESSION_STEPS))
    share = random.uniform(0.1, 0.7)
    memory = 0.5 * pods.memory[pod] * ((1 - share) + share * held) * np.exp(random.normal(0.0, 0.01, len(load)))
    return np.asarray(cores), np.asarray(memory)


def _open_connections(arrivals: FloatArray, session_steps: float) -> FloatArray:
    """Return the connections that are open at each step, with exponential sessions, as multiples of their mean."""
    kept = float(np.exp(-1 / session_steps))
    found = np.empty(len(arrivals))
    value = float(arrivals[:STEPS_PER_DAY].mean()) / (1 - kept)
    for step, arrived in enumerate(arrivals):
        value = kept * value + arrived
        found[step] = value
    return np.asarray(found / found.mean())
