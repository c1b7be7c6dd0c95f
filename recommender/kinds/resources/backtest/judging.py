"""Judges how well requests fitted the usage of the following day, container by container (pure).

The requests for a day are made only from the days before it, so that a policy cannot look ahead. The current requests
are the same on all days.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recommender.kinds.resources.backtest.policies import POLICIES, requests_before, with_least_requests
from recommender.kinds.resources.bounds import FEWEST_DAYS, SizeSettings
from recommender.kinds.resources.workloads import CPU, MEMORY, ClusterFacts, PodContainer, WorkloadContainer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.kinds.resources.backtest.usage_grid import SampleArray, UsageGrid
    from recommender.kinds.resources.histograms import FloatArray, IntArray

BoolArray: TypeAlias = NDArray[np.bool_]
NOW: Final = "now"
"""The name of the policy with the requests that kube-state-metrics states now."""
JUDGED: Final = (NOW, *POLICIES)
FEWEST_HISTORY_DAYS: Final = FEWEST_DAYS
"""The least number of earlier days with usage for a day to be judged."""


@dataclass(frozen=True, slots=True)
class RequestFit:
    """How well the requests of a policy for one resource of a container fitted."""

    over_ratio: float
    """Share of the pods' time in which usage was above the request."""
    reserved: float
    """The mean of the cores or bytes that a pod reserved."""
    used: float
    days_over: int
    """Pod-days with usage above the request."""
    kills_avoided: int
    """For memory, the number of kills at a limit below what the request would have been."""


@dataclass(frozen=True, slots=True)
class JudgedContainer:
    """One container of a workload."""

    name: WorkloadContainer
    days: int
    """Days that were judged; 0 if there is too little history."""
    history_days: int
    """Days for which CPU usage is known."""
    oom_kills: int
    """Out-of-memory kills on the days that were judged."""
    fits: Mapping[str, Mapping[str, RequestFit]]
    """Fits by resource and policy; a policy without a request is absent."""


@dataclass(slots=True)
class _Tally:
    """Sums by row."""

    over: FloatArray
    steps: FloatArray
    reserved: FloatArray
    used: FloatArray
    days_over: IntArray
    kills_avoided: IntArray

    @classmethod
    def empty(cls, rows: int) -> _Tally:
        """Return empty sums."""
        over, steps, reserved, used = np.zeros((4, rows))
        days_over, kills_avoided = np.zeros((2, rows), dtype=np.int64)
        return cls(over, steps, reserved, used, days_over, kills_avoided)

    def fit(self, row: int) -> RequestFit | None:
        """Return the fit of a row; None if there is no usage or no request."""
        steps = self.steps[row]
        if not steps:
            return None
        return RequestFit(
            float(self.over[row] / steps),
            float(self.reserved[row] / steps),
            float(self.used[row] / steps),
            int(self.days_over[row]),
            int(self.kills_avoided[row]),
        )


@dataclass(slots=True)
class _Judge:
    grid: UsageGrid
    limits: FloatArray
    """Current memory limits by row; NaN without one."""
    tallies: dict[tuple[str, str], _Tally] = field(default_factory=dict)

    def add(self, day: int, resource: str, policy: str, requests: FloatArray, rows: BoolArray) -> None:
        """Add a day for the rows that are judged on it."""
        usage = (self.grid.cores if resource == CPU else self.grid.memory)[:, self.grid.day(day)]
        tally = self.tallies.setdefault((resource, policy), _Tally.empty(len(requests)))
        places = self.grid.places
        chosen = np.flatnonzero(rows[places] & np.isfinite(requests)[places])
        _add(tally, places[chosen], usage[chosen], requests[places[chosen]])
        if resource == MEMORY:
            killed = [
                self.grid.rows.places[pod] for pod in self.grid.killed_containers(day) if pod in self.grid.rows.places
            ]
            avoided = [row for row in killed if rows[row] and requests[row] > self.limits[row]]
            np.add.at(tally.kills_avoided, np.array(avoided, dtype=np.int64), 1)


def _add(tally: _Tally, places: IntArray, usage: SampleArray, requests: FloatArray) -> None:
    known = np.isfinite(usage)
    # A comparison with NaN is false.
    over = usage > requests[:, None]
    np.add.at(tally.over, places, over.sum(axis=1))
    np.add.at(tally.steps, places, known.sum(axis=1))
    np.add.at(tally.reserved, places, known.sum(axis=1) * requests)
    np.add.at(tally.used, places, np.nansum(usage, axis=1, dtype=np.float64))
    np.add.at(tally.days_over, places, over.any(axis=1))


def judged_containers(
    grid: UsageGrid, settings: SizeSettings, facts: ClusterFacts, running: Iterable[PodContainer]
) -> list[JudgedContainer]:
    """Return each row with how well the policies fitted it; `settings` are those of our own policy."""
    count = len(grid.rows.names)
    present = {
        resource: _largest_amounts(grid, facts.requests.get(resource, {}), running) for resource in (CPU, MEMORY)
    }
    judge = _Judge(grid, _largest_amounts(grid, facts.limits.get(MEMORY, {}), running))
    has_usage = np.array([_rows_with_usage(grid, day) for day in range(grid.days)]).reshape(grid.days, count)
    days = np.zeros(count, dtype=np.int64)
    kills = np.zeros(count, dtype=np.int64)
    for day in range(FEWEST_HISTORY_DAYS, grid.days):
        rows = has_usage[day] & (has_usage[:day].sum(axis=0) >= FEWEST_HISTORY_DAYS)
        if not rows.any():
            continue
        days += rows
        killed = [grid.rows.places[pod] for pod in grid.killed_containers(day) if pod in grid.rows.places]
        np.add.at(kills, np.array([row for row in killed if rows[row]], dtype=np.int64), 1)
        for resource, by_policy in with_least_requests(requests_before(grid, day, settings), grid).items():
            for policy, requests in ({NOW: present[resource]} | by_policy).items():
                judge.add(day, resource, policy, requests, rows)
    return [
        JudgedContainer(
            name, int(days[row]), int(has_usage[:, row].sum()), int(kills[row]), _fits(judge.tallies, row)
        )
        for row, name in enumerate(grid.rows.names)
    ]  # fmt: skip


def _fits(tallies: Mapping[tuple[str, str], _Tally], row: int) -> dict[str, dict[str, RequestFit]]:
    found: dict[str, dict[str, RequestFit]] = {CPU: {}, MEMORY: {}}
    for (resource, policy), tally in tallies.items():
        fit = tally.fit(row)
        if fit is not None:
            found[resource][policy] = fit
    return found


def _rows_with_usage(grid: UsageGrid, day: int) -> BoolArray:
    """Return whether each row has usage of CPU on a day."""
    found = np.zeros(len(grid.rows.names), dtype=bool)
    known = np.isfinite(grid.cores[:, grid.day(day)]).any(axis=1)
    found[grid.places[known]] = True
    return found


def _largest_amounts(
    grid: UsageGrid, amounts: Mapping[PodContainer, float], running: Iterable[PodContainer]
) -> FloatArray:
    """Return the largest amount of the pods that run now, by row; NaN if no pod of a row states one."""
    found = np.full(len(grid.rows.names), np.nan)
    for pod in running:
        row = grid.rows.places.get(pod)
        if row is not None and pod in amounts:
            found[row] = np.fmax(found[row], amounts[pod])
    return found
