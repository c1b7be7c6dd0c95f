"""Upper forecasts of models that forecast a single value, with as much room as their own recent errors require."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from recommender.kinds.predictive.forecast import Forecasts
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.forecast import ForecastTask

    PointForecast: TypeAlias = Callable[[IntArray], FloatArray]

TRAILING_SECONDS = 2 * DAY_SECONDS
"""Errors of this trailing time count, or the newest `COUNTED_ERRORS` errors if these reach further back."""
COUNTED_ERRORS = 256
"""How many errors are used, evenly spread over the trailing time, because errors of neighbouring steps are nearly the
same."""
LEAST_ERRORS = 100
"""With fewer errors the share of targets above a forecast cannot be estimated, and plain headroom is added."""
LEAST_REACHES = 20
"""Plain headroom is also added if the errors cover less than this many times the reach of a forecast, because the
targets of neighbouring errors overlap."""


def calibrate(point: PointForecast, history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
    """Return the point forecasts as medians, and upper forecasts derived from the errors that are known at each origin.

    `point` returns forecasts of shape (series, origins) for the origins that it is given. The upper forecast is the
    median times the quantile of target / median. If that is below the median, because the model always forecasts too
    much, the median is lowered to it.
    """
    median = point(origins)
    factors = upper_factors(point, history, origins, task)
    upper = median * np.where(np.isnan(factors), 1 + task.headroom_ratio, factors)
    return Forecasts(np.minimum(median, upper), upper)


def calibrated_room(
    point: PointForecast, room: PointForecast, history: LoadHistory, origins: IntArray, task: ForecastTask
) -> Forecasts:
    """Return the point forecasts with as much room above them as covered the share `quantile` of past targets.

    It is the conformal rule for errors that are measured in their own unit (Lei and others, "Distribution-Free
    Predictive Inference for Regression", 2018, section 5.2). Until errors are known there is no forecast.
    """
    upper = point(origins) + np.maximum(upper_factors(point, history, origins, task, room), 0.0) * room(origins)
    return Forecasts(np.where(np.isnan(upper), np.nan, point(origins)), upper)


def in_blocks(
    forecast: Callable[[LoadHistory], Forecasts], history: LoadHistory, origins: IntArray, rows: int
) -> Forecasts:
    """Return the forecasts of all series, computed for a few series at a time to limit memory use."""
    shape = (len(history.values), len(origins))
    median, upper = np.empty(shape), np.empty(shape)
    for first in range(0, shape[0], rows):
        some = slice(first, first + rows)
        found = forecast(LoadHistory(history.start_seconds, history.step_seconds, history.values[some]))
        median[some], upper[some] = found.median, found.upper
    return Forecasts(median, upper)


def upper_factors(
    point: PointForecast,
    history: LoadHistory,
    origins: IntArray,
    task: ForecastTask,
    room: PointForecast | None = None,
) -> FloatArray:
    """Return the quantile of target / forecast that is known at each origin; NaN with fewer than 100 known errors.

    With `room`, the unit of errors, it is the quantile of (target - forecast) / unit.
    """
    delay = task.lead_steps(history.step_seconds) + task.window_steps(history.step_seconds) - 1
    newest = origins - delay
    strides = _strides(newest + 1, history.step_seconds)
    factors = np.full((history.values.shape[0], len(origins)), np.nan)
    for stride in np.unique(strides):
        chosen = np.flatnonzero((strides == stride) & (newest >= max(LEAST_ERRORS, LEAST_REACHES * delay) - 1))
        if chosen.size:
            factors[:, chosen] = _factors_of(point, history, newest[chosen], task, int(stride), room)
    return factors


def _strides(known: IntArray, step_seconds: float) -> IntArray:
    """Return how many steps apart the counted errors are; powers of two keep the number of different strides small."""
    steps = np.clip(known, 1, max(1, int(TRAILING_SECONDS / step_seconds)))
    powers = np.floor(np.log2(np.maximum(1, steps // COUNTED_ERRORS)))
    return np.exp2(powers).astype(np.int64)


def _factors_of(
    point: PointForecast,
    history: LoadHistory,
    newest: IntArray,
    task: ForecastTask,
    stride: int,
    room: PointForecast | None,
) -> FloatArray:
    # The grid follows the clock, so that it does not move when a history loses its oldest steps.
    phase = round(history.start_seconds / history.step_seconds) % stride
    last = (newest + phase) // stride
    first = max(int(last.min()) - COUNTED_ERRORS + 1, -(-phase // stride))
    numbers = np.arange(first, int(last.max()) + 1, dtype=np.int64)
    errors = _errors(point, room, history, numbers * stride - phase, task)
    padded = np.pad(errors, ((0, 0), (COUNTED_ERRORS - 1, 0)), constant_values=np.nan)
    ends, back = np.unique(last - first, return_inverse=True)
    windows = sliding_window_view(padded, COUNTED_ERRORS, axis=1)
    return _quantiles(windows[:, ends], task.quantile)[:, back]


def _errors(
    point: PointForecast, room: PointForecast | None, history: LoadHistory, steps: IntArray, task: ForecastTask
) -> FloatArray:
    """Return the error at each of the steps, as `upper_factors` measures it; NaN where there is none."""
    forecast, target = point(steps), _targets(history, steps, task)
    errors = np.full(target.shape, np.nan)
    with np.errstate(over="ignore"):
        # A ratio to next to nothing may be infinite, and does not count then.
        if room is not None:
            unit = room(steps)
            np.divide(target - forecast, unit, out=errors, where=unit > 0)
            return errors
        np.divide(target, forecast, out=errors, where=forecast > 0)
    errors[(forecast == 0) & (target == 0)] = 1.0
    return errors


def _targets(history: LoadHistory, steps: IntArray, task: ForecastTask) -> FloatArray:
    lead, window = task.lead_steps(history.step_seconds), task.window_steps(history.step_seconds)
    target = np.take(history.values, steps + lead, axis=1)
    for ahead in range(lead + 1, lead + window):
        target = np.fmax(target, np.take(history.values, steps + ahead, axis=1))
    return np.asarray(target)


def _quantiles(samples: FloatArray, quantile: float) -> FloatArray:
    """Return the interpolated quantile of the known samples over the last axis; NaN with fewer than 100 known ones."""
    ordered = np.sort(samples, axis=-1)
    known = np.isfinite(ordered).sum(axis=-1)
    place = np.maximum(known - 1, 0) * quantile
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(known - 1, 0))
    low = np.take_along_axis(ordered, below[..., np.newaxis], axis=-1)[..., 0]
    high = np.take_along_axis(ordered, above[..., np.newaxis], axis=-1)[..., 0]
    return np.where(known >= LEAST_ERRORS, low + (high - low) * (place - below), np.nan)
