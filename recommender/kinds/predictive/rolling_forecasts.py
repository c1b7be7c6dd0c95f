"""Forecasts as they would have been made at each moment, from a fit to the data known then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recommender.kinds.predictive.forecast import Forecasts, no_fit
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.upper_bound import bounded_forecasts, valid_history

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.kinds.predictive.arrays import IntArray
    from recommender.kinds.predictive.forecast import ForecastTask, Model
    from recommender.kinds.predictive.history import LoadHistory

REFIT_SECONDS = 2 * DAY_SECONDS

RunFit: TypeAlias = "Callable[[Model, LoadHistory, ForecastTask], Any]"
"""Runs the model's fit here or in a child process; returns None if it failed, so that the last parameters stay in
use."""


@dataclass(frozen=True, slots=True)
class RollingOptions:
    """How a model is refitted."""

    refit_seconds: float = REFIT_SECONDS
    first_step: int = 0
    """No forecast is needed before this step."""


def fit_here(model: Model, history: LoadHistory, task: ForecastTask) -> Any:  # noqa: ANN401 - each model has its own parameters
    """Fit in this process."""
    return model.fit(history, task)


def refit_steps(model: Model, history: LoadHistory, options: RollingOptions) -> IntArray:
    """Return the steps at which the model is fitted: the first one with enough history, and regularly from then on."""
    first = max(int(np.ceil(model.least_history_seconds / history.step_seconds - 1e-9)), options.first_step, 1)
    if model.fit is no_fit:
        return np.array([first] if first < history.steps else [], dtype=np.int64)
    every = max(1, int(options.refit_seconds / history.step_seconds))
    return np.arange(first, history.steps, every, dtype=np.int64)


def rolling_forecasts(
    model: Model,
    history: LoadHistory,
    task: ForecastTask,
    options: RollingOptions,
    run_fit: RunFit = fit_here,
    report: Callable[[int, int], None] = lambda _done, _all: None,
) -> Forecasts:
    """Return the forecasts of every step, shape (series, steps); NaN where the model has too little history.

    `report` is called with the number of finished fits and the number of all fits.
    """
    history = valid_history(history)
    shape = history.values.shape
    median, upper = np.full(shape, np.nan), np.full(shape, np.nan)
    starts = refit_steps(model, history, options)
    parameters: Any = None
    for index, start in enumerate(starts):
        # The decision at a step knows that step; a fit that runs before the step knows only those before it.
        fitted = run_fit(model, history.until(int(start)), task) if model.fit is not no_fit else None
        parameters = fitted if fitted is not None else parameters
        end = int(starts[index + 1]) if index + 1 < len(starts) else history.steps
        if parameters is not None or model.fit is no_fit:
            origins = np.arange(start, end, dtype=np.int64)
            found = bounded_forecasts(model, parameters, history.until(end), origins, task)
            median[:, start:end], upper[:, start:end] = found.median, found.upper
        report(index + 1, len(starts))
    return Forecasts(median, upper)
