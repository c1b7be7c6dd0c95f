"""Gradient boosting with pinball loss, by scikit-learn, on one thread, and the rows that it is fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from recommender.kinds.predictive.history import LoadHistory
from recommender.kinds.predictive.models.features import features, levels

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from recommender.kinds.predictive.arrays import BoolArray, FloatArray
    from recommender.kinds.predictive.forecast import ForecastTask

MOST_SERIES = 100
"""The largest number of series in a fit, evenly spread among those that have any load."""
ROWS_A_LEAF = 60
LEAST_ROWS_A_LEAF = 20
LEAVES_OF_ALL_ROWS = 40
"""The minimum leaf size is at most the number of rows divided by this."""
BINS = 127


def targets(history: LoadHistory, task: ForecastTask) -> FloatArray:
    """Return, for each step as origin, the largest load of steps i + lead … i + lead + window - 1.

    Shape (series, steps); NaN where the history does not hold the whole window yet, or where all of it is unknown.
    The target of origin i is thus known from step i + lead + window - 1 on.
    """
    lead, window = task.lead_steps(history.step_seconds), task.window_steps(history.step_seconds)
    found = np.full(history.values.shape, np.nan)
    count = history.steps - lead - window + 1
    if count > 0:
        known = np.where(np.isnan(history.values), -np.inf, history.values)
        largest = sliding_window_view(known, window, axis=1).max(axis=2)[:, lead : lead + count]
        found[:, :count] = np.where(np.isinf(largest), np.nan, largest)
    return found


@dataclass(frozen=True, slots=True)
class Rows:
    """Origins whose targets are known; arrays of shape (rows, …)."""

    features: FloatArray
    answers: FloatArray
    """Logarithms of target / level."""
    ages_seconds: FloatArray


def known_rows(history: LoadHistory, task: ForecastTask, seconds: float, most: int) -> Rows:
    """Return at most `most` rows, whose targets are known, evenly spread over the trailing `seconds` of all series."""
    step = history.step_seconds
    last = history.steps - task.lead_steps(step) - task.window_steps(step)
    first = max(0, history.steps - int(seconds / step))
    some = LoadHistory(history.start_seconds, step, _some_series(history.values))
    if last < first or not len(some.values):
        return Rows(np.empty((0, 0)), np.empty(0), np.empty(0))
    ratio = levels(some, first, last).log_ratio(targets(some, task)[:, first : last + 1])
    every = -(-ratio.size // most)
    chosen = ~np.isnan(ratio)
    chosen.ravel()[np.arange(chosen.size) % every != 0] = False
    ages = np.broadcast_to((history.steps - np.arange(first, last + 1)) * step, ratio.shape)
    return Rows(features(some, first, last, task)[chosen], ratio[chosen], ages[chosen])


def _some_series(values: FloatArray) -> FloatArray:
    """Return the series of a fit: evenly spread among those that have any load."""
    loaded = np.flatnonzero((values > 0).any(axis=1))
    return values[loaded[:: max(1, -(-len(loaded) // MOST_SERIES))]]


@dataclass(frozen=True, slots=True)
class BoostingOptions:
    """How closely trees follow the data that they are fitted to."""

    rounds: int = 40
    learning_rate: float = 0.15
    leaves: int = 8


DEFAULT_OPTIONS = BoostingOptions()


@dataclass(frozen=True, slots=True)
class Forest:
    """Fitted trees."""

    trees: Any
    columns: BoolArray
    """The features that varied in the fit; all others are left out."""

    def predict(self, rows: FloatArray) -> FloatArray:
        """Return the predicted value of each row; shape (rows,)."""
        with _one_thread():
            return np.asarray(self.trees.predict(rows[:, self.columns]), dtype=np.float64)


def fit_forest(
    rows: FloatArray, answers: FloatArray, quantile: float, options: BoostingOptions = DEFAULT_OPTIONS
) -> Forest:
    """Fit a quantile of `answers` to the features `rows`, which have shape (rows, features) and NaN where unknown."""
    from sklearn import ensemble  # noqa: PLC0415 - loaded where a fit runs

    columns = _varying_columns(rows)
    # The class has no types.
    regressor: Any = ensemble.HistGradientBoostingRegressor
    trees = regressor(
        loss="quantile",
        quantile=quantile,
        max_iter=options.rounds,
        learning_rate=options.learning_rate,
        max_leaf_nodes=options.leaves,
        min_samples_leaf=min(ROWS_A_LEAF, max(LEAST_ROWS_A_LEAF, len(rows) // LEAVES_OF_ALL_ROWS)),
        max_bins=BINS,
        early_stopping=False,
    )
    with _one_thread():
        trees.fit(rows[:, columns], answers)
    return Forest(trees, columns)


def _one_thread() -> AbstractContextManager[object]:
    """Keep OpenMP from using all cores, because fits and forecasts run beside the serving process."""
    return cast("AbstractContextManager[object]", _thread_pools().limit(limits=1))


@cache
def _thread_pools() -> Any:  # noqa: ANN401 - the library has no types
    """Return the libraries with thread pools of their own, cached because finding them takes longer than a forecast."""
    import threadpoolctl  # noqa: PLC0415 - loaded where a fit or a forecast runs
    from sklearn import ensemble  # noqa: F401, PLC0415 - what is loaded later would not be found

    controller: Any = threadpoolctl.ThreadpoolController
    return controller()


def _varying_columns(rows: FloatArray) -> BoolArray:
    """Return which columns contain different numbers; constant ones carry no information and cannot be binned."""
    known = ~np.isnan(rows)
    largest = np.where(known, rows, -np.inf).max(axis=0)
    smallest = np.where(known, rows, np.inf).min(axis=0)
    return np.asarray(largest > smallest)
