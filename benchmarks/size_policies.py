"""The requests that each policy would have set on made usage, and how well they would have fitted the next day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.sized_workloads import STEP_SECONDS, STEPS_PER_DAY
from recommender.kinds.resources.bounds import OWN_PERCENTILE_MARGIN_RATIO, SizeSettings, bounds_of
from recommender.kinds.resources.histograms import CPU_SCALE, UsageHistograms
from recommender.kinds.resources.usage import ContainerRows, MemoryPeaks
from recommender.kinds.resources.workloads import PodContainer, SizedWorkload, WorkloadContainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks.sized_workloads import MadeUsage
    from recommender.kinds.resources.histograms import FloatArray

HISTORY_DAYS: Final = 8
_MARGIN: Final = 1.15


@dataclass(frozen=True, slots=True)
class Fit:
    """How requests fitted the usage of the days that followed."""

    overrun_percent: float
    """Share of time over the request, as the mean of all containers."""
    reserved: float
    """Cores or bytes of all containers, as the mean of the days."""
    used: float


@dataclass(frozen=True, slots=True)
class _Past:
    """The usage before a day, by container and step."""

    cores: FloatArray
    memory: FloatArray


@dataclass(frozen=True, slots=True)
class JudgedDay:
    """A day: what each policy requested before it, and what was used."""

    requests: Mapping[str, FloatArray]
    used: FloatArray


def judged_days(usage: MadeUsage) -> Iterator[tuple[JudgedDay, JudgedDay]]:
    """Yield CPU and memory of each day with enough history before it."""
    days = usage.cores.shape[1] // STEPS_PER_DAY
    for day in range(HISTORY_DAYS, days):
        past = slice((day - HISTORY_DAYS) * STEPS_PER_DAY, day * STEPS_PER_DAY)
        now = slice(day * STEPS_PER_DAY, (day + 1) * STEPS_PER_DAY)
        known = _Past(usage.cores[:, past], usage.memory[:, past])
        requests = {name: policy(known) for name, policy in POLICIES.items()}
        yield (
            JudgedDay({name: cpu for name, (cpu, _) in requests.items()}, usage.cores[:, now]),
            JudgedDay({name: memory for name, (_, memory) in requests.items()}, usage.memory[:, now]),
        )


def fit_of(days: list[JudgedDay], policy: str, reserved_as: str) -> Fit:
    """Return how a policy fitted, with all of its requests scaled so that they reserve as much as another policy."""
    overruns, reserved, used = [], [], []
    for day in days:
        requests = day.requests[policy]
        scaled = requests * (day.requests[reserved_as].sum() / requests.sum())
        overruns.append(float((day.used > scaled[:, None]).mean()))
        reserved.append(float(scaled.sum()))
        used.append(float(day.used.sum(axis=0).mean()))
    return Fit(100 * float(np.mean(overruns)), float(np.mean(reserved)), float(np.mean(used)))


def _sized(settings: SizeSettings) -> Callable[[_Past], tuple[FloatArray, FloatArray]]:
    """Return the policy of `sizes` with these settings, without least requests."""
    return lambda past: (_cpu(past.cores, settings), _memory(past.memory, settings))


def _cpu(cores: FloatArray, settings: SizeSettings) -> FloatArray:
    containers = cores.shape[0]
    histograms = UsageHistograms(CPU_SCALE, HISTORY_DAYS, containers)
    rows = np.repeat(np.arange(containers), STEPS_PER_DAY)
    for day, part in enumerate(_newest_first(cores)):
        ages = (day * STEPS_PER_DAY + np.arange(STEPS_PER_DAY)[::-1]) * float(STEP_SECONDS)
        histograms.add(day, rows, part.ravel(), np.tile(ages, containers))
    return _target(histograms, settings, None)


def _memory(memory: FloatArray, settings: SizeSettings) -> FloatArray:
    pods = tuple(PodContainer("made", str(number), "app") for number in range(memory.shape[0]))
    rows = ContainerRows.of(
        {pod: WorkloadContainer(SizedWorkload("made", "Pod", f"{number:06}"), "app") for number, pod in enumerate(pods)}
    )
    peaks = MemoryPeaks(pods, np.array([part.max(axis=1) for part in _newest_first(memory)]))
    return _target(peaks.histograms(rows), settings, peaks.growth(rows))


def _target(histograms: UsageHistograms, settings: SizeSettings, growth: FloatArray | None) -> FloatArray:
    count = histograms.weights.shape[1]
    return bounds_of(histograms, np.full(count, float(HISTORY_DAYS)), settings, np.zeros(count), growth).target


def _newest_first(values: FloatArray) -> Iterator[FloatArray]:
    for day in reversed(range(HISTORY_DAYS)):
        yield values[:, day * STEPS_PER_DAY : (day + 1) * STEPS_PER_DAY]


def _krr(past: _Past) -> tuple[FloatArray, FloatArray]:
    """Return KRR's simple strategy: the 95th percentile of CPU, and the largest memory with 15 % more."""
    return np.asarray(np.percentile(past.cores, 95, axis=1)), np.asarray(past.memory.max(axis=1) * _MARGIN)


OURS: Final = "sizes --percentile=auto"
VPA: Final = "vpa"
KRR: Final = "krr"
POLICIES: Final[Mapping[str, Callable[[_Past], tuple[FloatArray, FloatArray]]]] = {
    OURS: _sized(SizeSettings(None, OWN_PERCENTILE_MARGIN_RATIO)),
    # The defaults of `sizes` are these.
    VPA: _sized(SizeSettings()),
    KRR: _krr,
}
