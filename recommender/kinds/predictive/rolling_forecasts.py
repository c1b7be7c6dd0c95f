"""Forecasts as they would have been made at each moment, from a fit to the data known then."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from recommender.kinds.predictive.forecast import Forecasts, no_fit
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.upper_bound import cap_forecasts, forecast_limits, valid_history

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recommender.kinds.predictive.arrays import IntArray
    from recommender.kinds.predictive.forecast import ForecastTask, Model
    from recommender.kinds.predictive.history import LoadHistory

REFIT_SECONDS = 2 * DAY_SECONDS
_BLOCKS_OF_HISTORY: Final = 7

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


def refit_steps(model: Model, history: LoadHistory, task: ForecastTask, options: RollingOptions) -> IntArray:
    """Return the steps at which the model is fitted: the first one with enough history, and regularly from then on.

    There are none if the model needs more history than is kept.
    """
    needed = int(np.ceil(model.least_history_seconds / history.step_seconds - 1e-9))
    if needed > _kept_steps(history, task):
        return np.array([], dtype=np.int64)
    first = max(needed, options.first_step, 1)
    if model.fit is no_fit:
        return np.array([first] if first < history.steps else [], dtype=np.int64)
    every = max(1, int(options.refit_seconds / history.step_seconds))
    return np.arange(first, history.steps, every, dtype=np.int64)


def known_before(history: LoadHistory, step: int, task: ForecastTask) -> LoadHistory:
    """Return the part of the history before a step that a fit at that step uses."""
    return history.between(max(0, step - _kept_steps(history, task)), step)


def rolling_forecasts(
    model: Model,
    history: LoadHistory,
    task: ForecastTask,
    options: RollingOptions,
    run_fit: RunFit = fit_here,
    report: Callable[[int, int], None] = lambda _done, _all: None,
) -> Forecasts:
    """Return the forecasts of every step, shape (series, steps); NaN where the model has too little history.

    Each uses no more of the past than `run` keeps. `report` is called with the number of finished fits and the number
    of all fits.
    """
    history = valid_history(history)
    shape = history.values.shape
    median, upper = np.full(shape, np.nan), np.full(shape, np.nan)
    limits = forecast_limits(history, task)
    starts = refit_steps(model, history, task, options)
    parameters: Any = None
    for index, start in enumerate(starts):
        # The decision at a step knows that step; a fit that runs before the step knows only those before it.
        fitted = run_fit(model, known_before(history, int(start), task), task) if model.fit is not no_fit else None
        parameters = fitted if fitted is not None else parameters
        end = int(starts[index + 1]) if index + 1 < len(starts) else history.steps
        if parameters is not None or model.fit is no_fit:
            for first, last in _blocks(int(start), end, _kept_steps(history, task)):
                known = known_before(history, last, task)
                origins = np.arange(first, last, dtype=np.int64) - (last - known.steps)
                found = cap_forecasts(model.forecast(parameters, known, origins, task), limits[:, first:last])
                median[:, first:last], upper[:, first:last] = found.median, found.upper
        report(index + 1, len(starts))
    return Forecasts(median, upper)


def _kept_steps(history: LoadHistory, task: ForecastTask) -> int:
    """Return how many steps of the past are kept; all of them if the configured history is longer."""
    return max(1, math.ceil(min(task.history_seconds / history.step_seconds, float(history.steps)) - 1e-9))


def _blocks(start: int, end: int, kept: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of steps whose forecasts are made together, from the past that the last of them sees.

    The first of a range thus sees less of the past than the last one, by a seventh at most: two days of two weeks.
    """
    first = start
    while first < end:
        last = min(end, max(kept, first + max(1, kept // _BLOCKS_OF_HISTORY)))
        yield first, last
        first = last
