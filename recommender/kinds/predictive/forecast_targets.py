"""The targets of forecasts: the largest load of the window that begins at its horizon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.history import LoadHistory


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
