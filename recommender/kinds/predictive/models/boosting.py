"""Gradient boosting with pinball loss, by scikit-learn, on one thread."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from recommender.kinds.predictive.arrays import BoolArray, FloatArray

ROWS_A_LEAF = 60
LEAST_ROWS_A_LEAF = 20
LEAVES_OF_ALL_ROWS = 40
"""The minimum leaf size is at most the number of rows divided by this."""
BINS = 127


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

    columns = _varying(rows)
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


def _varying(rows: FloatArray) -> BoolArray:
    """Return which columns contain different numbers; constant ones carry no information and cannot be binned."""
    known = ~np.isnan(rows)
    largest = np.where(known, rows, -np.inf).max(axis=0)
    smallest = np.where(known, rows, np.inf).min(axis=0)
    return np.asarray(largest > smallest)
