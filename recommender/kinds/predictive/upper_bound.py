"""The upper bound of forecasts: a multiple of the largest load of the history.

After a minute of zeros, a ratio to the current level is meaningless, and a trend may point anywhere. Whatever a model
predicts, tomorrow's load is of the same order of magnitude as the load that was seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.forecast import Forecasts
from recommender.kinds.predictive.history import LoadHistory

if TYPE_CHECKING:
    from typing import Any

    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.forecast import ForecastTask, Model

LARGEST_LOAD: Final = float(np.finfo(np.float32).max)
"""Anything larger is not a load: histories cannot hold it, and the arithmetic of models would overflow."""


def forecast_limit(largest: FloatArray, load: FloatArray, task: ForecastTask) -> FloatArray:
    """Return the upper bound of forecasts; NaN where no load is known at all.

    `largest` is the largest known load of the history, and `load` the observed one. The observed load with plain
    headroom is never cut.
    """
    return np.fmax(largest * task.max_over_history, load * (1 + task.headroom_ratio))


def forecast_limits(history: LoadHistory, task: ForecastTask) -> FloatArray:
    """Return the limit of the forecasts from each step, shape (series, steps); NaN where the load is unknown."""
    history = valid_history(history)
    steps = np.arange(history.steps, dtype=np.int64)
    return forecast_limit(_largest_known(history, steps, task), history.values, task)


def bounded_forecasts(
    model: Model,
    parameters: Any,  # noqa: ANN401 - each model has its own parameters
    history: LoadHistory,
    origins: IntArray,
    task: ForecastTask,
) -> Forecasts:
    """Return a model's forecasts from each of the origins, each capped at its limit."""
    history = valid_history(history)
    found = model.forecast(parameters, history, origins, task)
    limit = forecast_limit(_largest_known(history, origins, task), history.values[:, origins], task)
    return cap_forecasts(found, limit)


def cap_forecasts(found: Forecasts, limit: FloatArray) -> Forecasts:
    """Return the forecasts, each capped at its limit; the upper forecast is NaN where it is not a number."""
    upper = np.where(np.isfinite(found.upper), np.minimum(found.upper, limit), np.nan)
    return Forecasts(np.minimum(found.median, upper), upper)


def valid_history(history: LoadHistory) -> LoadHistory:
    """Return the history without values that cannot be a load: negative, not finite, or too large for a sample."""
    values = history.values
    with np.errstate(invalid="ignore"):
        invalid = ~((values >= 0) & (values <= LARGEST_LOAD)) & ~np.isnan(values)
    if not invalid.any():
        return history
    return LoadHistory(history.start_seconds, history.step_seconds, np.where(invalid, np.nan, values))


def _largest_known(history: LoadHistory, origins: IntArray, task: ForecastTask) -> FloatArray:
    """Return the largest known load of the history up to each origin, shape (series, origins); NaN without any.

    Two running maxima, one from the left and one from the right end of each block as long as the window, cover every
    window (van Herk and Gil-Werman).
    """
    steps, values = history.steps, history.values
    window = max(1, round(min(task.history_seconds / history.step_seconds, float(steps))))
    if window >= steps:
        return np.asarray(np.fmax.accumulate(values, axis=1)[:, origins])
    series, surplus = len(values), -steps % window
    blocks = np.pad(values, ((0, 0), (0, surplus)), constant_values=np.nan).reshape(series, -1, window)
    ahead = np.fmax.accumulate(blocks, axis=2).reshape(series, -1)
    behind = np.fmax.accumulate(blocks[:, :, ::-1], axis=2)[:, :, ::-1].reshape(series, -1)
    firsts = np.maximum(origins - window + 1, 0)
    return np.fmax(ahead[:, origins], np.where(origins >= window - 1, behind[:, firsts], np.nan))
