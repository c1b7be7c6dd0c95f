"""The rows that models are fitted to: features of past moments, and the load that followed them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from recommender.kinds.predictive.history import LoadHistory
from recommender.kinds.predictive.models.features import features, levels

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.forecast import ForecastTask


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


MOST_SERIES = 100
"""The largest number of series in a fit, evenly spread among those that have any load."""


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
