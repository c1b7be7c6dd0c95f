"""The requests that each policy would have set on known usage, and how well they would have fitted the next day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.peer_sizes import KRR_DAYS, krr_bytes, krr_cores, vpa_bytes, vpa_cores
from benchmarks.sized_workloads import STEP_SECONDS, STEPS_PER_DAY
from recommender.kinds.resources.bounds import SizeSettings, bounds_of
from recommender.kinds.resources.histograms import CPU_SCALE, UsageHistograms
from recommender.kinds.resources.resources_settings import OWN_PERCENTILE_MARGIN_RATIO
from recommender.kinds.resources.usage import ContainerRows, MemoryPeaks
from recommender.kinds.resources.workloads import PodContainer, SizedWorkload, WorkloadContainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks.sized_workloads import MadeUsage
    from recommender.kinds.resources.histograms import FloatArray

HISTORY_DAYS: Final = KRR_DAYS
"""The length of the history before the first day that is judged: the longest one that a policy uses."""
_OUR_DAYS: Final = 8


@dataclass(frozen=True, slots=True)
class Fit:
    """How requests fitted the usage of the days that followed."""

    overrun_percent: float
    """Share of time over the request, as the mean of all containers."""
    overrun_days: float
    """Of 1,000 days of a container, those with time over the request: where it is the limit of memory, kills."""
    reserved: float
    """Cores or bytes of all containers, as the mean of the days."""
    used: float


@dataclass(frozen=True, slots=True)
class JudgedDay:
    """A day: what each policy requested before it, and what was used."""

    requests: Mapping[str, FloatArray]
    used: FloatArray


def judged_days(usage: MadeUsage) -> Iterator[tuple[JudgedDay, JudgedDay]]:
    """Yield CPU and memory of each day with enough history before it."""
    for day in range(HISTORY_DAYS, usage.cores.shape[1] // STEPS_PER_DAY):
        past = slice((day - HISTORY_DAYS) * STEPS_PER_DAY, day * STEPS_PER_DAY)
        now = slice(day * STEPS_PER_DAY, (day + 1) * STEPS_PER_DAY)
        yield (
            JudgedDay({name: cpu(usage.cores[:, past]) for name, (cpu, _) in POLICIES.items()}, usage.cores[:, now]),
            JudgedDay(
                {name: memory(usage.memory[:, past]) for name, (_, memory) in POLICIES.items()}, usage.memory[:, now]
            ),
        )


def fit_of(days: list[JudgedDay], policy: str, reserved_as: str) -> Fit:
    """Return how a policy fitted, with all of its requests scaled so that they reserve as much as another policy."""
    bills = {name: sum(float(day.requests[name].sum()) for day in days) for name in (policy, reserved_as)}
    factor = bills[reserved_as] / bills[policy]
    over = np.array([day.used > factor * day.requests[policy][:, None] for day in days])
    return Fit(
        100 * float(over.mean()),
        1000 * float(over.any(axis=2).mean()),
        bills[reserved_as] / len(days),
        float(np.mean([day.used.sum(axis=0).mean() for day in days])),
    )


def _sized_cores(cores: FloatArray) -> FloatArray:
    containers = cores.shape[0]
    histograms = UsageHistograms(CPU_SCALE, _OUR_DAYS, containers)
    rows = np.repeat(np.arange(containers), STEPS_PER_DAY)
    for day, part in enumerate(_newest_first(cores)):
        ages = (day * STEPS_PER_DAY + np.arange(STEPS_PER_DAY)[::-1]) * float(STEP_SECONDS)
        histograms.add(day, rows, part.ravel(), np.tile(ages, containers))
    return _target(histograms, None)


def _sized_bytes(memory: FloatArray) -> FloatArray:
    pods = tuple(PodContainer("made", str(number), "app") for number in range(memory.shape[0]))
    rows = ContainerRows.of(
        {pod: WorkloadContainer(SizedWorkload("made", "Pod", f"{number:06}"), "app") for number, pod in enumerate(pods)}
    )
    peaks = MemoryPeaks(pods, np.array([part.max(axis=1) for part in _newest_first(memory)]))
    return _target(peaks.histograms(rows), peaks.swings(rows))


def _target(histograms: UsageHistograms, swings: FloatArray | None) -> FloatArray:
    """Return the target of `--percentile=auto`, without least requests."""
    count = histograms.weights.shape[1]
    settings = SizeSettings(None, OWN_PERCENTILE_MARGIN_RATIO, has_interval=False)
    return bounds_of(histograms, np.full(count, float(_OUR_DAYS)), settings, np.zeros(count), swings).target


def _newest_first(values: FloatArray) -> Iterator[FloatArray]:
    days = values.shape[1] // STEPS_PER_DAY
    for day in reversed(range(days - _OUR_DAYS, days)):
        yield values[:, day * STEPS_PER_DAY : (day + 1) * STEPS_PER_DAY]


OURS: Final = "sizes --percentile=auto"
VPA: Final = "vpa"
KRR: Final = "krr"
POLICIES: Final[Mapping[str, tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]]] = {
    OURS: (_sized_cores, _sized_bytes),
    VPA: (vpa_cores, vpa_bytes),
    KRR: (krr_cores, krr_bytes),
}
"""By name, the requests of CPU and of memory that follow from usage by container and step."""
