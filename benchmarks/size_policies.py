"""The requests that each policy would have set for known usage, and how well they would have fitted the next day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.sized_workloads import STEP_SECONDS, STEPS_PER_DAY
from recommender.kinds.resources.backtest.policies import KRR_DAYS, requests_before
from recommender.kinds.resources.backtest.usage_grid import UsageGrid, edges_of
from recommender.kinds.resources.bounds import SizeSettings
from recommender.kinds.resources.resources_settings import OWN_PERCENTILE_MARGIN_RATIO
from recommender.kinds.resources.usage import ContainerRows
from recommender.kinds.resources.workloads import CPU, MEMORY, PodContainer, SizedWorkload, WorkloadContainer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.sized_workloads import MadeUsage
    from recommender.kinds.resources.backtest.usage_grid import SampleArray
    from recommender.kinds.resources.histograms import FloatArray

HISTORY_DAYS: Final = KRR_DAYS
"""The length of the history before the first judged day: the longest one that a policy uses."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How requests fitted the usage of the days that followed."""

    overrun_percent: float
    """The share of time over the request, as the mean of all containers."""
    overrun_days: float
    """Days with time over the request per 1,000 days of a container; if the request is the memory limit, these are
    kills."""
    reserved: float
    """The requested cores or bytes of all containers together, as the mean of the days."""
    used: float


@dataclass(frozen=True, slots=True)
class JudgedDay:
    """The requests of each policy before a day, and the usage during the day."""

    requests: Mapping[str, FloatArray]
    used: SampleArray


def judged_days(usage: MadeUsage) -> Iterator[tuple[JudgedDay, JudgedDay]]:
    """Yield CPU and memory of each day that has enough history, with the requests of `POLICIES`."""
    grid = _grid(usage)
    settings = SizeSettings(None, OWN_PERCENTILE_MARGIN_RATIO, has_interval=False)
    for day in range(HISTORY_DAYS, grid.days):
        requests = requests_before(grid, day, settings)
        yield (
            JudgedDay(requests[CPU], grid.cores[:, grid.day(day)]),
            JudgedDay(requests[MEMORY], grid.memory[:, grid.day(day)]),
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


def _grid(usage: MadeUsage) -> UsageGrid:
    """Return the usage as that of pods with one container each."""
    containers, steps = usage.cores.shape
    pods = tuple(PodContainer("made", f"{number:06}", "app") for number in range(containers))
    rows = ContainerRows.of({pod: WorkloadContainer(SizedWorkload("made", "Pod", pod.pod), "app") for pod in pods})
    edges = edges_of(steps // STEPS_PER_DAY, STEP_SECONDS)
    return UsageGrid(
        rows, pods, usage.cores.astype(np.float32), usage.memory.astype(np.float32), edges, STEP_SECONDS
    )  # fmt: skip
