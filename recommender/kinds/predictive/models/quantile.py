"""Conditional quantiles by gradient boosting on features without a unit: how much room is needed now.

The fitted value is the logarithm of target / current level (`features`), for all series together. The fit has two
halves, each on every other day of the trailing two weeks. Their mean is the forecast. The forecasts of each half for
the days that it has not seen show how far targets really lie above the median (cross-conformal calibration: Vovk,
2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.forecast import Forecasts, Model
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory
from recommender.kinds.predictive.models.boosting import Forest, fit_forest, known_rows
from recommender.kinds.predictive.models.features import rows_to_predict
from recommender.kinds.predictive.models.load_at_origin import limit_growth
from recommender.kinds.predictive.predictive_settings import ModelName

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.forecast import ForecastTask

LEAST_HISTORY_SECONDS = 2 * DAY_SECONDS
FIT_SECONDS = 14 * DAY_SECONDS
"""Targets that are older than this are not fitted."""
MOST_ROWS = 10_000
FEWEST_ROWS = 100
FEWEST_ROWS_A_HALF = 20
"""A half with fewer rows shows neither a quantile nor how far targets lie from one."""
HALVES = 2
SHORT_BLOCK_SECONDS = 6 * 3600.0
"""Length of the blocks that alternate between the two halves while there are too few days."""
MEDIAN = 0.5
SPREAD_QUANTILE = 0.9
"""The quantile whose distance from the median is the unit of uncertainty; higher quantiles follow single bursts."""
SMALLEST_SPREAD = 0.01
SPREAD_FLOOR_RATIO = 0.3
"""A spread is at least this share of the mean spread, because a forest without any spread has seen too few rows."""
COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.995)


@dataclass(frozen=True, slots=True)
class Half:
    """Forests that were fitted to one half of the days."""

    median: Forest
    spread_quantile: Forest


@dataclass(frozen=True, slots=True)
class QuantileParameters:
    """The parameters of a fit."""

    halves: tuple[Half, ...]
    distances: FloatArray
    """How many spreads above the median cover the shares COVERAGES of the targets; shape (coverages,)."""
    least_spread: float


def fit(history: LoadHistory, task: ForecastTask) -> QuantileParameters | None:
    """Fit on the known targets of the trailing days; None if there are too few, or all are of a few hours."""
    rows = known_rows(history, task, FIT_SECONDS, MOST_ROWS)
    if len(rows.answers) < FEWEST_ROWS:
        return None
    block = DAY_SECONDS if rows.ages_seconds.max() >= 2 * HALVES * DAY_SECONDS else SHORT_BLOCK_SECONDS
    # Only blocks in which any load is known alternate: those of a nightly job may all have even numbers.
    _, known_block = np.unique(rows.ages_seconds // block, return_inverse=True)
    half_of_row = known_block % HALVES
    if np.bincount(half_of_row, minlength=HALVES).min() < FEWEST_ROWS_A_HALF:
        return None
    halves: list[Half] = []
    median, spread = np.zeros(len(rows.answers)), np.zeros(len(rows.answers))
    for half in range(HALVES):
        unseen = half_of_row == half
        fitted = _fit_half(rows.features[~unseen], rows.answers[~unseen])
        halves.append(fitted)
        median[unseen], spread[unseen] = _predicted_by_half(fitted, rows.features[unseen])
    least_spread = SPREAD_FLOOR_RATIO * float(spread.mean())
    spread = np.maximum(spread, least_spread)
    distances = np.quantile((rows.answers - median) / spread, COVERAGES)
    return QuantileParameters(tuple(halves), distances, least_spread)


def forecast(
    parameters: QuantileParameters | None, history: LoadHistory, origins: IntArray, task: ForecastTask
) -> Forecasts:
    """Return median and upper forecasts; NaN where the load of the last minutes is unknown, or was never above 0."""
    shape = (len(history.values), len(origins))
    median, upper = np.full(shape, np.nan), np.full(shape, np.nan)
    if parameters is None or not len(origins):
        return Forecasts(median, upper)
    distance = float(np.interp(task.quantile, COVERAGES, parameters.distances))
    for some, level, rows in rows_to_predict(history, origins, task):
        middle, spread = _predicted_by_all(parameters, rows)
        middle, spread = middle.reshape(level.load.shape), spread.reshape(level.load.shape)
        median[some] = level.load_of(middle)
        upper[some] = level.load_of(middle + spread * distance)
    return limit_growth(Forecasts(median, upper), history, origins, task.max_growth, task.lead_seconds)


def _fit_half(rows: FloatArray, answers: FloatArray) -> Half:
    return Half(fit_forest(rows, answers, MEDIAN), fit_forest(rows, answers, SPREAD_QUANTILE))


def _predicted_by_half(half: Half, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    median = half.median.predict(rows)
    return median, np.maximum(half.spread_quantile.predict(rows) - median, SMALLEST_SPREAD)


def _predicted_by_all(parameters: QuantileParameters, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of the halves' medians and spreads, as logarithms relative to the level."""
    found = [_predicted_by_half(half, rows) for half in parameters.halves]
    medians, spreads = zip(*found, strict=True)
    return np.mean(medians, axis=0), np.maximum(np.mean(spreads, axis=0), parameters.least_spread)


QUANTILE = Model(ModelName.QUANTILE, LEAST_HISTORY_SECONDS, fit, forecast, is_heavy=True)
