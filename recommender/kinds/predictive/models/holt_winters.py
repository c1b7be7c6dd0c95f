"""Holt-Winters: a level, a damped trend and a season, each smoothed exponentially (additive).

Source: the component form in Hyndman and Athanasopoulos, "Forecasting: Principles and Practice", as in statsmodels.
statsmodels finds the smoothing parameters; the recursion with these parameters runs here, for all series and all phases
of the bins at once.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recommender.kinds.predictive.calibration import calibrate
from recommender.kinds.predictive.forecast import Model
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.models.coarser_grid import (
    CoarseGrid,
    at_origins,
    bins_ahead,
    by_wall_clock,
    coarse_grid,
    fill_gaps,
    largest_between,
    mean_by_bin,
    wall_clock_bins,
    whole_bins,
)
from recommender.kinds.predictive.models.load_at_origin import limit_growth, limited_points, trend_growth

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.forecast import Forecasts, ForecastTask
    from recommender.kinds.predictive.history import LoadHistory

BINS_A_DAY = 96
WEEKLY_DAYS = 21
"""The fewest days of history for a weekly season; with fewer, the season is a day."""
MOST_DAYS = 28


class Smoothing(NamedTuple):
    """Parameters of each series, arrays of shape (series,); NaN where there is no fit."""

    level: FloatArray
    trend: FloatArray
    season: FloatArray
    damping: FloatArray


class InitialState(NamedTuple):
    """The state before the first bin."""

    level: FloatArray
    """The level of each series, shape (series,)."""
    trend: FloatArray
    """The trend of each series, shape (series,)."""
    season: FloatArray
    """The season of each series, shape (series, bins of a season)."""


@dataclass(frozen=True, slots=True)
class HoltWintersParameters:
    """The parameters of a fit."""

    grid: CoarseGrid
    smoothing: Smoothing
    start: InitialState


def smoothing_forecasts(
    values: FloatArray,
    shares: Smoothing,
    start: InitialState,
    ahead: FloatArray,
    phases: FloatArray,
    slots: IntArray | None = None,
) -> FloatArray:
    """Return the largest forecast made after each bin for the moments `ahead`; shape (bins, series, phases).

    After an unknown bin, only time has advanced. `ahead` counts bins, with fractions. `slots` are the places of the
    bins in the season, including the bins ahead of the last one; None if they are consecutive.
    """
    alpha, beta = shares.level[:, np.newaxis], shares.trend[:, np.newaxis]
    gamma, phi = shares.season[:, np.newaxis], shares.damping[:, np.newaxis]
    level, trend = start.level[:, np.newaxis], start.trend[:, np.newaxis]
    length = start.season.shape[1]
    # The bins of a later phase lie between two slots of the season.
    following = np.roll(start.season, -1, axis=1)
    season = start.season[:, np.newaxis] + phases[:, np.newaxis] * (following - start.season)[:, np.newaxis]
    bins = range(int(ahead.min()), int(ahead.max()) + 2)
    slots = np.arange(len(values) + bins[-1] + 1) % length if slots is None else slots % length
    found = np.empty(values.shape)
    for index, value in enumerate(values):
        slot = int(slots[index])
        known = ~np.isnan(value)
        expected = level + phi * trend
        error = np.where(known, value - expected - season[:, :, slot], 0.0)
        risen = expected + alpha * error
        trend = np.where(known, beta * (risen - level) + (1 - beta) * phi * trend, phi * trend)
        season[:, :, slot] += gamma * error
        level = risen
        paths = [_path(level, trend, phi, season, int(slots[index + steps]), steps) for steps in bins]
        found[index] = largest_between(paths, ahead - bins[0])
    return found


def _path(
    level: FloatArray, trend: FloatArray, phi: FloatArray, season: FloatArray, slot: int, bins: int
) -> FloatArray:
    """Return the forecast this many bins ahead; a damped trend has then risen by phi + phi^2 + … times its value."""
    damped = np.sum([phi**step for step in range(1, bins + 1)], axis=0) if bins else 0.0
    path: FloatArray = level + damped * trend + season[:, :, slot]
    return path


def _fit(history: LoadHistory, task: ForecastTask) -> HoltWintersParameters:
    grid = coarse_grid(history, BINS_A_DAY, MOST_DAYS)
    values = by_wall_clock(whole_bins(history, grid), grid, task.clock)
    length = grid.bins_a_day * (7 if values.shape[1] >= WEEKLY_DAYS * grid.bins_a_day else 1)
    rows = [_fit_series(row, length, grid.bins_a_day) for row in values]
    numbers = np.array([row[0] for row in rows]).reshape(-1, 6)
    seasons = np.array([row[1] for row in rows]).reshape(-1, length)
    start = InitialState(numbers[:, 4], numbers[:, 5], seasons)
    return HoltWintersParameters(grid, Smoothing(*numbers[:, :4].T), start)


def _fit_series(values: FloatArray, length: int, bins_a_day: int) -> tuple[list[float], FloatArray]:
    """Return a list of the four smoothing parameters, level and trend; and the season."""
    whole = fill_gaps(values, bins_a_day)
    if len(whole) < 2 * length - 1 or 2 * np.isnan(values).sum() > len(values):
        return [np.nan] * 6, np.full(length, np.nan)
    level, trend, season = _first_state(whole, length)
    if np.ptp(whole) <= 1e-9 * np.abs(whole).max():
        return [0.1, 0.0, 0.0, 1.0, level, 0.0], np.zeros(length)
    return [*_search(whole, level, trend, season), level, trend], season


def _first_state(values: FloatArray, length: int) -> tuple[float, float, FloatArray]:
    """Return level, trend and season before the first bin, from the means of each season and of each slot."""
    level = float(values[:length].mean())
    trend = float(values[-length:].mean() - level) / max(1, len(values) - length)
    rest = values - level - trend * np.arange(len(values))
    slots = np.arange(len(values)) % length
    season = np.bincount(slots, rest, minlength=length) / np.bincount(slots, minlength=length)
    return level, trend, season - season.mean()


def _search(values: FloatArray, level: float, trend: float, season: FloatArray) -> list[float]:
    """Return the smoothing parameters with the least squared errors one bin ahead."""
    from statsmodels.tsa.holtwinters import ExponentialSmoothing  # noqa: PLC0415 - only the child that fits pays for it

    # The search stops at absolute differences.
    scale = float(np.abs(values).max())
    # Only child processes fit, so the filters of the whole process may change.
    with warnings.catch_warnings(action="ignore"):
        model = ExponentialSmoothing(  # type: ignore[no-untyped-call]
            values / scale,
            trend="add",
            damped_trend=True,
            seasonal="add",
            seasonal_periods=len(season),
            initialization_method="known",
            initial_level=level / scale,
            initial_trend=trend / scale,
            initial_seasonal=season / scale,
        )
        result = model.fit()  # type: ignore[no-untyped-call]
    names = ("smoothing_level", "smoothing_trend", "smoothing_seasonal", "damping_trend")
    return [float(result.params[name]) for name in names]


def _forecast(
    parameters: HoltWintersParameters, history: LoadHistory, origins: IntArray, task: ForecastTask
) -> Forecasts:
    growth = trend_growth(task)
    grid = parameters.grid
    ahead = bins_ahead(task, history.step_seconds, grid)
    values = mean_by_bin(history, grid)
    slots = wall_clock_bins(grid, len(values) + int(ahead.max()) + 2, task.clock)
    largest = smoothing_forecasts(values, parameters.smoothing, parameters.start, ahead, grid.phases(), slots)

    def point(steps: IntArray) -> FloatArray:
        return limited_points(at_origins(largest, history, grid, steps), history, steps, growth, task.lead_seconds)

    return limit_growth(calibrate(point, history, origins, task), history, origins, task.max_growth, task.lead_seconds)


HOLT_WINTERS = Model("holt-winters", 2 * DAY_SECONDS, _fit, _forecast, is_heavy=True)
