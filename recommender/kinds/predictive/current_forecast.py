"""The current forecast of several series at once by one model (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recommender.kinds.predictive.forecast import Forecasts, no_fit
from recommender.kinds.predictive.history import LoadHistory
from recommender.kinds.predictive.upper_bound import valid_history

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.forecast import ForecastTask, Model

SERIES_AT_ONCE = 500
"""How many series are forecast at once, because models use several times the memory of the history."""


def with_current(history: LoadHistory, present: FloatArray) -> LoadHistory:
    """Return the history with the observed load, shape (series,), as its newest step."""
    values = history.values.copy()
    values[:, -1] = present
    return LoadHistory(history.start_seconds, history.step_seconds, values)


def current_forecasts(
    model: Model,
    parameters: Any,  # noqa: ANN401 - each model has its own parameters
    history: LoadHistory,
    task: ForecastTask,
) -> Forecasts:
    """Return the forecasts from the newest step before they are bounded, shape (series, 1); NaN where there is none.

    `parameters` is None if the model has no parameters or has not been fitted yet.
    """
    history, series = valid_history(history), len(history.values)
    if parameters is None and model.fit is not no_fit:
        return Forecasts(np.full((series, 1), np.nan), np.full((series, 1), np.nan))
    return model.forecast(parameters, history, np.array([history.steps - 1], dtype=np.int64), task)


def lacks_history(model: Model, known_seconds: float) -> str:
    """Return a text such as `needs 2 days of history, has 3 h`; empty if there is enough history for the model."""
    if known_seconds >= model.least_history_seconds:
        return ""
    return f"needs {duration_text(model.least_history_seconds)} of history, has {duration_text(known_seconds)}"


def duration_text(seconds: float) -> str:
    """Return a duration in words: `2 days`, `3 h`, `20 min`, `5 s`."""
    for size, unit in ((86_400.0, "day"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= size:
            count = f"{np.floor(10 * seconds / size) / 10:g}"
            return f"{count} {unit}{'s' if unit == 'day' and count != '1' else ''}"
    return f"{seconds:.0f} s"
