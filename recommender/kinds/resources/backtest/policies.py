"""The requests that each recommender would have made at the beginning of a day, from earlier usage.

The Vertical Pod Autoscaler uses histograms whose buckets grow by 5%, in which a sample from a day ago weighs half. It
requests the 90th percentile plus 15%; for memory, the samples are the largest values of each day
(kubernetes/autoscaler, vertical-pod-autoscaler). KRR's strategy `simple` uses the largest 95th percentile of CPU of all
pods, and the largest memory plus 15%, over 14 days (robusta-dev/krr).
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.resources.bounds import POD_MINIMUM_BYTES, POD_MINIMUM_CORES, SizeSettings, bounds_of, minimum_of
from recommender.kinds.resources.histograms import CPU_SCALE, DAY_SECONDS, FloatArray, UsageHistograms
from recommender.kinds.resources.oom_kills import memory_after_oom
from recommender.kinds.resources.resources_settings import MARGIN_RATIO, TARGET_PERCENTILE
from recommender.kinds.resources.usage import MemoryPeaks
from recommender.kinds.resources.workloads import CPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recommender.kinds.resources.backtest.usage_grid import SampleArray, UsageGrid

OURS: Final = "sizes"
VPA: Final = "vpa"
KRR: Final = "krr"
POLICIES: Final = (OURS, VPA, KRR)
HISTORY_DAYS: Final = 8
"""The days of history that our policy and the Vertical Pod Autoscaler use."""
KRR_DAYS: Final = 14
_KRR_PERCENTILE: Final = 95
_KRR_MARGIN: Final = 1.15
_KRR_LEAST: Final = {CPU: 0.01, MEMORY: 100.0 * 2**20}
"""KRR's defaults for `--cpu-min` and `--mem-min`."""
_PODS_AT_ONCE: Final = 500


def requests_before(grid: UsageGrid, day: int, settings: SizeSettings) -> dict[str, dict[str, FloatArray]]:
    """Return cores and bytes by resource, policy and row, from the days before `day`; NaN without any usage.

    `settings` are those of our own policy. The policies' least requests are not applied.
    """
    cores = _histograms_of_cores(grid, day)
    memory = _peaks(grid, day)
    found = memory.histograms(grid.rows)
    of_vpa = SizeSettings(TARGET_PERCENTILE, MARGIN_RATIO, has_interval=False)
    swings = memory.swings(grid.rows) if settings.percentile is None else None
    return {
        CPU: {
            OURS: _target(cores, settings, None),
            VPA: _target(cores, of_vpa, None),
            KRR: _largest(grid, day, grid.cores, _percentile),
        },
        MEMORY: {
            OURS: _target(found, settings, swings),
            VPA: _target(found, of_vpa, None),
            KRR: _largest(grid, day, grid.memory, lambda part: np.nanmax(part, axis=1)) * _KRR_MARGIN,
        },
    }


def with_least_requests(
    requests: Mapping[str, Mapping[str, FloatArray]], grid: UsageGrid
) -> dict[str, dict[str, FloatArray]]:
    """Return the requests, raised to the least request that each policy ever makes."""
    containers = Counter(name.workload for name in grid.rows.names)
    counts = np.array([containers[name.workload] for name in grid.rows.names], dtype=np.int64)
    pod = {CPU: minimum_of(POD_MINIMUM_CORES, counts), MEMORY: minimum_of(POD_MINIMUM_BYTES, counts)}
    return {
        resource: {
            policy: np.asarray(np.maximum(amounts, _KRR_LEAST[resource] if policy == KRR else pod[resource]))
            for policy, amounts in by_policy.items()
        }
        for resource, by_policy in requests.items()
    }


def _target(histograms: UsageHistograms, settings: SizeSettings, swings: FloatArray | None) -> FloatArray:
    count = histograms.weights.shape[1]
    unlimited = SizeSettings(settings.percentile, settings.margin_ratio, has_interval=False)
    return bounds_of(histograms, np.full(count, float(HISTORY_DAYS)), unlimited, np.zeros(count), swings).target


def _histograms_of_cores(grid: UsageGrid, day: int) -> UsageHistograms:
    days = min(HISTORY_DAYS, day)
    found = UsageHistograms(CPU_SCALE, days, len(grid.rows.names))
    for age in range(days):
        steps = grid.day(day - 1 - age)
        part = grid.cores[:, steps]
        pods, columns = np.nonzero(np.isfinite(part))
        ages = (grid.edges[day] - 1 - steps.start - columns) * grid.step_seconds
        # The edges of days are rounded to steps: no sample of a day is older than its end.
        ages = np.maximum(ages, age * DAY_SECONDS)
        found.add(age, grid.places[pods], part[pods, columns].astype(np.float64), ages)
    return found


def _peaks(grid: UsageGrid, day: int) -> MemoryPeaks:
    """Return the peaks of the days before `day`, raised where a container was killed; the newest day is first."""
    days = min(HISTORY_DAYS, day)
    peaks = np.full((days, len(grid.pods)), np.nan)
    for age in range(days):
        number = day - 1 - age
        part = grid.memory[:, grid.day(number)]
        known = np.isfinite(part).any(axis=1)
        peaks[age, known] = np.nanmax(part[known], axis=1)
        killed = [place for place, pod in enumerate(grid.pods) if pod in grid.killed_containers(number)]
        peaks[age, killed] = memory_after_oom(np.nan_to_num(peaks[age, killed]), np.zeros(len(killed)))
    return MemoryPeaks(grid.pods, peaks)


def _largest(
    grid: UsageGrid, day: int, usage: SampleArray, of_pods: Callable[[SampleArray], SampleArray]
) -> FloatArray:
    """Return, for each row, the largest of its pods' values, computed by `of_pods` over the days that KRR uses."""
    steps = slice(grid.edges[max(0, day - KRR_DAYS)], grid.edges[day])
    found = np.full(len(grid.rows.names), np.nan)
    for first in range(0, len(grid.pods), _PODS_AT_ONCE):
        part = usage[first : first + _PODS_AT_ONCE, steps]
        with warnings.catch_warnings():
            # These pods did not exist yet.
            warnings.simplefilter("ignore", RuntimeWarning)
            each = of_pods(part).astype(np.float64)
        np.fmax.at(found, grid.places[first : first + _PODS_AT_ONCE], each)
    return found


def _percentile(part: SampleArray) -> SampleArray:
    return np.asarray(np.nanpercentile(part, _KRR_PERCENTILE, axis=1), dtype=np.float32)
