"""A coarser grid for models whose fit takes long: bins of several steps, with a limited number of bins a day.

A model on bins of 15 minutes would be up to 15 minutes late. Therefore its recursion runs once for each phase: the bins
of phase 2 begin two steps later than those of phase 0, and at every step the bins of one phase have just ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.history import DAY_SECONDS

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.history import LoadHistory
    from recommender.kinds.predictive.wall_clock import WallClock

MOST_OFFSETS = 8
"""The largest number of moments of a target's window at which the forecast is evaluated."""


@dataclass(frozen=True, slots=True)
class CoarseGrid:
    """Bins, numbered from the Unix epoch on."""

    steps_per_bin: int
    first_bin: int
    bins_a_day: int
    step_seconds: float

    def phases(self) -> FloatArray:
        """Return by which fraction of a bin the bins of each phase begin later than those of phase 0."""
        return np.arange(self.steps_per_bin, dtype=np.float64) / self.steps_per_bin


def coarse_grid(history: LoadHistory, most_bins_a_day: int, most_days: float) -> CoarseGrid:
    """Return the grid of bins over the last days of a history."""
    steps_a_day = DAY_SECONDS / history.step_seconds
    steps_per_bin = max(1, int(np.ceil(steps_a_day / most_bins_a_day - 1e-9)))
    bins_a_day = max(1, round(steps_a_day / steps_per_bin))
    begin = history.first + max(0, history.steps - round(most_days * steps_a_day))
    return CoarseGrid(steps_per_bin, -(-begin // steps_per_bin), bins_a_day, history.step_seconds)


def mean_by_bin(history: LoadHistory, grid: CoarseGrid) -> FloatArray:
    """Return the mean load of the bins of each phase, shape (bins, series, phases).

    NaN where less than half is known, and for bins that are not over. Bins before the history are NaN.
    """
    size = grid.steps_per_bin
    begin = grid.first_bin * size - history.first
    values = history.values[:, max(0, begin) :]
    bins = max(0, -(-(values.shape[1] + max(0, -begin)) // size))
    padded = np.full((len(values), (bins + 1) * size), np.nan)
    padded[:, max(0, -begin) : max(0, -begin) + values.shape[1]] = values
    counts, totals = np.zeros((len(values), bins * size)), np.zeros((len(values), bins * size))
    for step in range(size):
        part = padded[:, step : step + bins * size]
        counts += ~np.isnan(part)
        totals += np.where(np.isnan(part), 0.0, part)
    means = np.where(2 * counts >= size, totals / np.maximum(counts, 1.0), np.nan)
    # The last ones reach beyond the history: their content is not known yet.
    means[:, max(0, max(0, -begin) + values.shape[1] - size + 1) :] = np.nan
    return np.moveaxis(means.reshape(len(values), bins, size), 0, 1)


def whole_bins(history: LoadHistory, grid: CoarseGrid) -> FloatArray:
    """Return the mean load of the bins of phase 0 that are over, shape (series, bins)."""
    bins = (history.first + history.steps) // grid.steps_per_bin - grid.first_bin
    return mean_by_bin(history, grid)[: max(0, bins), :, 0].T


def wall_clock_bins(grid: CoarseGrid, count: int, clock: WallClock) -> IntArray:
    """Return the place of each of the first `count` bins in the local day or week, counted from the first.

    An hour that clocks skip is left out, and one that they show twice counts twice.
    """
    seconds = grid.steps_per_bin * grid.step_seconds
    found = np.arange(count) + clock.moved_steps(grid.first_bin * seconds, seconds, count)
    return np.asarray(found, dtype=np.int64)


def by_wall_clock(values: FloatArray, grid: CoarseGrid, clock: WallClock) -> FloatArray:
    """Return bins, shape (series, bins), at the places of `wall_clock_bins`; NaN where clocks skipped an hour."""
    places = wall_clock_bins(grid, values.shape[1], clock)
    if not len(places):
        return values
    found = np.full((len(values), int(places.max()) + 1), np.nan)
    inside = places >= 0
    found[:, places[inside]] = values[:, inside]
    return found


def at_origins(points: FloatArray, history: LoadHistory, grid: CoarseGrid, origins: IntArray) -> FloatArray:
    """Return the values of the bins that end at the origins; NaN at origins before the end of the first bin.

    `points` has the shape (bins, series, phases), and the result has the shape (series, origins).
    """
    starts = history.first + origins - (grid.steps_per_bin - 1) - grid.first_bin * grid.steps_per_bin
    bins, phases = np.divmod(np.maximum(starts, 0), grid.steps_per_bin)
    found: FloatArray = points[bins, :, phases].T
    return np.where(starts >= 0, found, np.nan)


def bins_ahead(task: ForecastTask, step_seconds: float, grid: CoarseGrid) -> FloatArray:
    """Return how many bins, with fractions, the moments of the target's window lie ahead of the last ended bin."""
    lead, window = task.lead_steps(step_seconds), task.window_steps(step_seconds)
    steps = np.unique(np.linspace(lead, lead + window - 1, min(window, MOST_OFFSETS)).round())
    # The mean of a bin is its value half a bin before its end.
    return (steps + (grid.steps_per_bin - 1) / 2) / grid.steps_per_bin


def largest_between(paths: list[FloatArray], ahead: FloatArray) -> FloatArray:
    """Return the largest value at the moments `ahead`, in bins; `paths` has the values at 0, 1, 2, … bins ahead."""
    found = np.full(paths[0].shape, -np.inf)
    for moment in ahead:
        below = int(moment)
        part = moment - below
        found = np.maximum(found, paths[below] * (1 - part) + paths[below + 1] * part)
    return found


def fill_gaps(values: FloatArray, bins_a_day: int) -> FloatArray:
    """Return values, shape (bins,), with gaps filled with the value of a day earlier, or else with the last value.

    Unknown values at the beginning take the first known one. If all are unknown, they stay so.
    """
    known = np.flatnonzero(~np.isnan(values))
    if not known.size:
        return values
    result = values.copy()
    result[: known[0]] = values[known[0]]
    for index in np.flatnonzero(np.isnan(result)):
        result[index] = result[index - bins_a_day] if index >= bins_a_day else result[index - 1]
    return result
