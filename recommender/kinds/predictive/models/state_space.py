"""A state-space model: a level and a daily cycle of six harmonics, all of which may change slowly.

Source: the unobserved components model of Harvey (1989), as in statsmodels, which estimates the variances. With fixed
variances, the gain of the Kalman filter tends to a constant; the filter runs here with that constant gain, for all
series and all phases of the bins at once. There is no trend: on recorded load, its variance made the fit take three
times as long and lowered the likelihood.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

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

BINS_A_DAY = 48
"""Bins of half an hour keep a fit, which filters all bins some hundred times, below ten seconds."""
MOST_DAYS = 14
HARMONICS = 6
STATES = 1 + 2 * HARMONICS
MOST_ITERATIONS = 50


@dataclass(frozen=True, slots=True)
class StateSpaceParameters:
    """The parameters of a fit: the filter of each series."""

    grid: CoarseGrid
    start: FloatArray
    """Shape (series, states): the state at the first bin; NaN where there is no fit."""
    gain: FloatArray
    """Shape (series, states): the share of the forecast's error by which each state is corrected."""


def transition(bins_a_day: int, bins: float = 1.0) -> FloatArray:
    """Return the matrix that advances a state by this many bins, shape (states, states)."""
    matrix = np.eye(STATES)
    for harmonic in range(1, HARMONICS + 1):
        angle = 2 * np.pi * harmonic * bins / bins_a_day
        at = 2 * harmonic - 1
        matrix[at : at + 2, at : at + 2] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    return matrix


def design() -> FloatArray:
    """Return the vector that observes a state: its level and the first of each harmonic's pair; shape (states,)."""
    row = np.zeros(STATES)
    row[[0, *range(1, STATES, 2)]] = 1.0
    return row


def filter_forecasts(
    values: FloatArray, parameters: StateSpaceParameters, ahead: FloatArray, places: IntArray | None = None
) -> FloatArray:
    """Return the largest forecast made after each bin for the moments `ahead`; shape (bins, series, phases).

    After an unknown bin, only time has advanced. `ahead` counts bins, with fractions. `places` are the places of the
    bins by local clocks, including the bins ahead of the last one; None if they are consecutive.
    """
    day, shown = parameters.grid.bins_a_day, design()
    later = np.stack([transition(day, phase) for phase in parameters.grid.phases()])
    state = np.einsum("pij,sj->spi", later, parameters.start)
    bins = range(int(ahead.min()), int(ahead.max()) + 2)
    places = np.arange(len(values) + bins[-1] + 1) if places is None else places
    # Clocks are changed twice a year, so there are nearly always the same few distances.
    transitions = {int(by): transition(day, int(by)) for by in np.unique(np.concatenate(_distances(places, bins)))}
    shows = {by: shown @ matrix for by, matrix in transitions.items()}
    found = np.empty(values.shape)
    for index, value in enumerate(values):
        error = np.where(np.isnan(value), 0.0, value - state @ shown)
        state += error[..., np.newaxis] * parameters.gain[:, np.newaxis]
        paths = [state @ shows[int(places[index + steps] - places[index])] for steps in bins]
        found[index] = largest_between(paths, ahead - bins[0])
        state = state @ transitions[int(places[index + 1] - places[index])].T
    return found


def _distances(places: IntArray, bins: range) -> list[IntArray]:
    """Return how many bins clocks advance from each place during one bin, and during each number of bins in `bins`."""
    return [places[steps:] - places[: len(places) - steps] for steps in (1, *bins)]


def _fit(history: LoadHistory, task: ForecastTask) -> StateSpaceParameters:
    grid = coarse_grid(history, BINS_A_DAY, MOST_DAYS)
    values = by_wall_clock(whole_bins(history, grid), grid, task.clock)
    rows = [_fit_series(row, grid.bins_a_day) for row in values]
    return StateSpaceParameters(
        grid,
        np.array([row[0] for row in rows]).reshape(-1, STATES),
        np.array([row[1] for row in rows]).reshape(-1, STATES),
    )


def _fit_series(values: FloatArray, bins_a_day: int) -> tuple[FloatArray, FloatArray]:
    """Return the state at the first bin, and the gain."""
    known = values[~np.isnan(values)]
    if len(values) < 2 * bins_a_day - 1 or 2 * len(known) < len(values):
        return np.full(STATES, np.nan), np.full(STATES, np.nan)
    if np.ptp(known) <= 1e-9 * known.max():
        return design() * np.eye(STATES)[0] * known[0], np.eye(STATES)[0] * 0.1
    return _search(values, float(known.max()), bins_a_day)


def _search(values: FloatArray, scale: float, bins_a_day: int) -> tuple[FloatArray, FloatArray]:
    """Return the first state and the gain, by maximum-likelihood variances."""
    from statsmodels.tsa.statespace.structural import UnobservedComponents  # noqa: PLC0415 - only the child pays for it

    season = [{"period": bins_a_day, "harmonics": HARMONICS}]
    # Only child processes fit, so the filters of the whole process may change.
    with warnings.catch_warnings(action="ignore"):
        model = UnobservedComponents(values / scale, level="llevel", freq_seasonal=season)  # type: ignore[no-untyped-call]
        result = model.fit(disp=False, maxiter=MOST_ITERATIONS)  # type: ignore[no-untyped-call]
    last = int(np.flatnonzero(~np.isnan(values))[-1])
    gain = np.linalg.solve(transition(bins_a_day), result.filter_results.kalman_gain[:, 0, last])
    return result.smoothed_state[:, 0] * scale, gain


def _forecast(
    parameters: StateSpaceParameters, history: LoadHistory, origins: IntArray, task: ForecastTask
) -> Forecasts:
    growth = trend_growth(task)
    grid = parameters.grid
    values, ahead = mean_by_bin(history, grid), bins_ahead(task, history.step_seconds, grid)
    largest = filter_forecasts(
        values, parameters, ahead, wall_clock_bins(grid, len(values) + int(ahead.max()) + 2, task.clock)
    )

    def point(steps: IntArray) -> FloatArray:
        return limited_points(at_origins(largest, history, grid, steps), history, steps, growth, task.lead_seconds)

    return limit_growth(calibrate(point, history, origins, task), history, origins, task.max_growth, task.lead_seconds)


STATE_SPACE = Model("state-space", 2 * DAY_SECONDS, _fit, _forecast, is_heavy=True)
