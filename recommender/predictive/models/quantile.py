"""Conditional quantiles: how much room is needed now, by gradient boosting on features without a unit.

What is fitted is the logarithm of target / present level, for all series together. The fit has two halves, each on
every other day of the trailing two weeks: their mean is the forecast, and what each one says of the days that it has
not seen shows how far targets really lie above the median (cross-conformal calibration: Vovk, 2015).

The share of targets that may exceed the upper forecast is `1 - quantile` on average. It is spent where covering them
costs most: larger at the peak of a large uncertainty, smaller at night, where much room is few replicas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.predictive.forecast import Forecasts, Model
from recommender.predictive.history import DAY_SECONDS, WEEK_SECONDS, LoadHistory
from recommender.predictive.models.boosting import Forest, fit_forest
from recommender.predictive.models.features import StepRange, features, in_steps, levels
from recommender.predictive.models.present import limited, present_load
from recommender.predictive.settings import ModelName
from recommender.predictive.targets import targets

if TYPE_CHECKING:
    from recommender.predictive.arrays import FloatArray, IntArray
    from recommender.predictive.forecast import ForecastTask

LEAST_HISTORY_SECONDS = 2 * DAY_SECONDS
FIT_SECONDS = 14 * DAY_SECONDS
"""Older targets are not fitted."""
MOST_ROWS = 10_000
FEWEST_ROWS = 100
HALVES = 2
SHORT_BLOCK_SECONDS = 6 * 3600.0
"""Blocks of the two halves while there are too few days."""
MEDIAN = 0.5
SPREAD_QUANTILE = 0.9
"""The distance from the median to it is the unit of uncertainty: higher ones follow single bursts."""
SMALLEST_SPREAD = 0.01
SPREAD_FLOOR_RATIO = 0.3
"""A spread is at least this share of the mean spread: where a forest sees none, it has seen too few rows."""
SMALLEST_RATIO = 0.02
"""A target is taken as at least this share of the level, so that its logarithm is finite."""
COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.995)
COST_EXPONENT = 0.7
"""1 would lose the fewest minutes, 0 the least load, at equal replica-hours."""
SMALLEST_MISS, LARGEST_MISS = 0.005, 0.4
MOST_SERIES = 100
"""Features of a fit are made for so many of the series, evenly spread among those that have any load."""
SERIES_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Half:
    """Forests that were fitted to one half of the days."""

    median: Forest
    spread_quantile: Forest


@dataclass(frozen=True, slots=True)
class QuantileParameters:
    """What a fit has found."""

    halves: tuple[Half, ...]
    distances: FloatArray
    """How many spreads above the median the share COVERAGES of the targets lies; shape (coverages,)."""
    least_spread: float
    usual_cost: float
    """The mean of what one spread costs, relative to the mean load."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Origins whose targets are known; arrays of shape (rows, …)."""

    features: FloatArray
    answers: FloatArray
    """Logarithms of target / level."""
    relative_levels: FloatArray
    """Level / mean load of the last week."""
    ages_seconds: FloatArray


def fit(history: LoadHistory, task: ForecastTask) -> QuantileParameters | None:
    """Fit on the known targets of the trailing days; None: there are too few."""
    rows = _rows(history, task)
    if len(rows.answers) < FEWEST_ROWS:
        return None
    block = DAY_SECONDS if rows.ages_seconds.max() >= 2 * HALVES * DAY_SECONDS else SHORT_BLOCK_SECONDS
    half_of_row = (rows.ages_seconds // block).astype(np.int64) % HALVES
    halves: list[Half] = []
    median, spread = np.zeros(len(rows.answers)), np.zeros(len(rows.answers))
    for half in range(HALVES):
        unseen = half_of_row == half
        fitted = _fit_half(rows.features[~unseen], rows.answers[~unseen])
        halves.append(fitted)
        median[unseen], spread[unseen] = _of_half(fitted, rows.features[unseen])
    least_spread = SPREAD_FLOOR_RATIO * float(spread.mean())
    spread = np.maximum(spread, least_spread)
    distances = np.quantile((rows.answers - median) / spread, COVERAGES)
    usual_cost = float(np.mean(_cost(rows.relative_levels, median, spread)))
    return QuantileParameters(tuple(halves), distances, least_spread, usual_cost)


def forecast(
    parameters: QuantileParameters | None, history: LoadHistory, origins: IntArray, task: ForecastTask
) -> Forecasts:
    """Return median and upper forecasts; NaN where the load of the last minutes is unknown, or all was 0."""
    shape = (len(history.values), len(origins))
    median, upper = np.full(shape, np.nan), np.full(shape, np.nan)
    if parameters is None or not len(origins):
        return Forecasts(median, upper)
    first, last = int(origins.min()), int(origins.max())
    for begin in range(0, len(history.values), SERIES_AT_ONCE):
        some = slice(begin, begin + SERIES_AT_ONCE)
        part = LoadHistory(history.start_seconds, history.step_seconds, history.values[some])
        level = levels(part, first, last)[:, origins - first]
        relative = _relative_levels(part, first, last)[:, origins - first]
        rows = features(part, first, last, task)[:, origins - first]
        middle, spread = _of_all(parameters, rows.reshape(-1, rows.shape[2]))
        middle, spread = middle.reshape(level.shape), spread.reshape(level.shape)
        miss = _allowed_miss(_cost(relative, middle, spread) / parameters.usual_cost, task.quantile)
        median[some] = level * np.exp(middle)
        upper[some] = level * np.exp(middle + spread * _distance(parameters.distances, miss))
    # Where the load at the origin is unknown, the model does not act, though the last minutes may be known.
    known = ~np.isnan(present_load(history, origins))
    found = Forecasts(np.where(known, median, np.nan), np.where(known, upper, np.nan))
    return limited(found, history, origins, task.max_growth, task.lead_seconds)


def _fit_half(rows: FloatArray, answers: FloatArray) -> Half:
    return Half(fit_forest(rows, answers, MEDIAN), fit_forest(rows, answers, SPREAD_QUANTILE))


def _of_half(half: Half, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    median = half.median.predict(rows)
    return median, np.maximum(half.spread_quantile.predict(rows) - median, SMALLEST_SPREAD)


def _of_all(parameters: QuantileParameters, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of the halves' medians and spreads, as logarithms relative to the level."""
    found = [_of_half(half, rows) for half in parameters.halves]
    medians, spreads = zip(*found, strict=True)
    return np.mean(medians, axis=0), np.maximum(np.mean(spreads, axis=0), parameters.least_spread)


def _cost(relative_level: FloatArray, median: FloatArray, spread: FloatArray) -> FloatArray:
    """Return what one spread more costs, to the power COST_EXPONENT."""
    return np.asarray((relative_level * np.exp(median) * spread) ** COST_EXPONENT)


def _allowed_miss(relative_cost: FloatArray, quantile: float) -> FloatArray:
    """Return the share of targets that may exceed the upper forecast, by what it costs here to cover them.

    With an exponential tail beyond the spread, the number of short steps at a given cost is smallest if this share is
    in proportion to the cost of a spread.
    """
    known = np.where(np.isnan(relative_cost), 1.0, relative_cost)
    return np.clip((1 - quantile) * known, SMALLEST_MISS, LARGEST_MISS)


def _distance(distances: FloatArray, miss: FloatArray) -> FloatArray:
    """Return how many spreads above the median the upper forecast lies; linear in the logarithm of the miss."""
    return np.interp(-np.log(miss), -np.log(1 - np.array(COVERAGES)), distances)


def _relative_levels(history: LoadHistory, first: int, last: int) -> FloatArray:
    around = StepRange(history.values, first, last)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = levels(history, first, last) / around.mean(in_steps(WEEK_SECONDS, history.step_seconds))
    return np.asarray(found)


def _rows(history: LoadHistory, task: ForecastTask) -> Rows:
    """Return evenly spread origins of all series whose targets are known."""
    step = history.step_seconds
    last = history.steps - task.lead_steps(step) - task.window_steps(step)
    first = max(0, history.steps - int(FIT_SECONDS / step))
    some = LoadHistory(history.start_seconds, step, _some_series(history.values))
    if last < first or not len(some.values):
        return Rows(np.empty((0, 0)), np.empty(0), np.empty(0), np.empty(0))
    ratio = targets(some, task)[:, first : last + 1] / levels(some, first, last)
    every = -(-ratio.size // MOST_ROWS)
    chosen = ~np.isnan(ratio)
    chosen.ravel()[np.arange(chosen.size) % every != 0] = False
    ages = np.broadcast_to((history.steps - np.arange(first, last + 1)) * step, ratio.shape)
    return Rows(
        features(some, first, last, task)[chosen],
        np.log(np.maximum(ratio[chosen], SMALLEST_RATIO)),
        _relative_levels(some, first, last)[chosen],
        ages[chosen],
    )


def _some_series(values: FloatArray) -> FloatArray:
    """Return the series of a fit: evenly spread among those that have any load."""
    loaded = np.flatnonzero((values > 0).any(axis=1))
    return values[loaded[:: max(1, -(-len(loaded) // MOST_SERIES))]]


QUANTILE = Model(ModelName.QUANTILE, LEAST_HISTORY_SECONDS, fit, forecast, is_heavy=True)
