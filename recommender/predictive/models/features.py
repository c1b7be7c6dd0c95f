"""Features without a unit: what the load of the last hours, of yesterday and of last week looks like from now.

Everything is divided by the present level or is a time, so that one model serves series of any size. Each feature is
computed for a contiguous range of origins from as much of the history as it needs: cheap for all origins of one series
as well as for the last origin of many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.predictive.history import DAY_SECONDS

if TYPE_CHECKING:
    from recommender.predictive.arrays import FloatArray
    from recommender.predictive.forecast import ForecastTask
    from recommender.predictive.history import LoadHistory

MINUTE_SECONDS = 60.0
LEVEL_SECONDS = 5 * MINUTE_SECONDS
SMALLEST_LEVEL_RATIO = 0.02
"""The level is at least this share of the mean of the last day, so that quotients stay finite in a silence."""
MEAN_SECONDS = (0.0, 2 * 60.0, 10 * 60.0, 15 * 60.0, 30 * 60.0, 3600.0, 3 * 3600.0, 6 * 3600.0, DAY_SECONDS)
DEVIATION_SECONDS = (15 * 60.0, 3600.0, 3 * 3600.0)
MAXIMUM_SECONDS = (5 * 60.0, 15 * 60.0, 3600.0, 3 * 3600.0)
SLOPE_SECONDS = (5 * 60.0, 15 * 60.0, 3600.0)
AHEAD_SECONDS = 30 * MINUTE_SECONDS
DAYS_BACK = 7
FEATURE_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Range:
    """Windows of one history that end at each step of a range; shape (series, steps of the range)."""

    values: FloatArray
    first: int
    last: int

    def back(self, steps: int) -> Range:
        """Return the same range so many steps earlier."""
        return Range(self.values, self.first - steps, self.last - steps)

    def _reach(self, steps: int) -> FloatArray:
        """Return the values that windows of so many steps reach; NaN before and after the history."""
        begin, end = self.first - steps + 1, self.last + 1
        size = self.values.shape[1]
        inside = self.values[:, min(max(begin, 0), size) : min(max(end, 0), size)]
        before = min(max(0, -begin), end - begin)
        after = end - begin - before - inside.shape[1]
        return np.pad(inside, ((0, 0), (before, after)), constant_values=np.nan) if before or after else inside

    def mean(self, steps: int) -> FloatArray:
        """Return means of the known values; NaN where there are none."""
        reach = self._reach(steps)
        known = ~np.isnan(reach)
        return _quotient(_sums(np.where(known, reach, 0.0), steps), _sums(known.astype(np.float64), steps))

    def deviation(self, steps: int) -> FloatArray:
        """Return standard deviations."""
        begin = max(self.first - steps + 1, 0)
        squares = Range(np.square(self.values[:, begin : self.last + 1]), self.first - begin, self.last - begin)
        return np.asarray(np.sqrt(np.maximum(squares.mean(steps) - np.square(self.mean(steps)), 0.0)))

    def maximum(self, steps: int) -> FloatArray:
        """Return the largest known values; NaN where there are none."""
        reach = np.where(np.isnan(found := self._reach(steps)), -np.inf, found)
        length = 1
        while length < steps:
            shift = min(length, steps - length)
            reach = np.maximum(reach[:, shift:], reach[:, :-shift])
            length += shift
        return np.asarray(np.where(np.isinf(reach), np.nan, reach))


def _sums(values: FloatArray, steps: int) -> FloatArray:
    sums = np.cumsum(values, axis=1)
    found = sums[:, steps - 1 :].copy()
    found[:, 1:] -= sums[:, :-steps]
    return found


def _quotient(above: FloatArray, below: FloatArray) -> FloatArray:
    unknown = np.full(np.broadcast_shapes(above.shape, below.shape), np.nan)
    return np.asarray(np.divide(above, below, out=unknown, where=below > 0))


def _log_quotient(above: FloatArray, below: FloatArray) -> FloatArray:
    found = _quotient(above, below)
    return np.log(np.maximum(found, SMALLEST_LEVEL_RATIO))


def levels(history: LoadHistory, first: int, last: int) -> FloatArray:
    """Return the present level at each origin: the mean of 5 min, never far below that of the last day."""
    return level_of(Range(history.values, first, last), history.step_seconds)


def level_of(around: Range, step_seconds: float) -> FloatArray:
    now = around.mean(in_steps(LEVEL_SECONDS, step_seconds))
    day = around.mean(in_steps(DAY_SECONDS, step_seconds))
    level = np.maximum(now, SMALLEST_LEVEL_RATIO * day)
    return np.where(level > 0, level, np.nan)


def in_steps(seconds: float, step_seconds: float) -> int:
    """Return the nearest number of steps, at least one."""
    return max(1, round(seconds / step_seconds))


def features(history: LoadHistory, first: int, last: int, task: ForecastTask) -> FloatArray:
    """Return the features of origins first … last; shape (series, origins, features), NaN where unknown."""
    step = history.step_seconds
    around = Range(history.values, first, last)
    level = level_of(around, step)
    columns = [_log_quotient(around.mean(w), level) for w in _unique(MEAN_SECONDS, step)]
    columns += [_quotient(around.deviation(max(w, 3)), level) for w in _unique(DEVIATION_SECONDS, step)]
    columns += [_log_quotient(around.maximum(w), level) for w in _unique(MAXIMUM_SECONDS, step) if w > 1]
    columns += _slopes(around, step)
    columns += _seasons(around, level, step, task)
    columns += _times(history, first, last)
    # Sums differ in their last bits by where they begin; so that no threshold of a tree lies between, they are rounded.
    found = np.stack([np.broadcast_to(column, level.shape) for column in columns], axis=2)
    return np.asarray(np.round(found, FEATURE_DECIMALS), dtype=np.float64)


def _unique(seconds: tuple[float, ...], step: float) -> list[int]:
    return sorted({in_steps(each, step) for each in seconds})


def _slopes(around: Range, step: float) -> list[FloatArray]:
    return [_log_quotient(around.mean(w), around.back(w).mean(w)) for w in _unique(SLOPE_SECONDS, step)]


def _seasons(around: Range, level: FloatArray, step: float, task: ForecastTask) -> list[FloatArray]:
    day = in_steps(DAY_SECONDS, step)
    lead, window = task.lead_steps(step), task.window_steps(step)
    ahead = in_steps(AHEAD_SECONDS, step)
    if lead + window + ahead > day:
        return []
    found = []
    ratios, absolutes = [], []
    hour = in_steps(3600.0, step)
    for days in range(1, DAYS_BACK + 1):
        then = around.back(days * day)
        then_level = level_of(then, step)
        target = then.back(-(lead + window - 1)).maximum(window)
        ratios.append(_log_quotient(target, then_level))
        absolutes.append(target)
        if days in (1, DAYS_BACK):
            wide = then.back(-(lead + window - 1 + ahead)).maximum(window + ahead)
            found += [
                ratios[-1],
                _log_quotient(wide, then_level),
                _log_quotient(then.back(-(lead + window - 1)).mean(window + lead), then.mean(hour)),
                _log_quotient(around.mean(hour), then.mean(hour)),
                _log_quotient(target, level),
            ]
    stack = np.stack(ratios)
    known = ~np.isnan(stack)
    count = known.sum(axis=0)
    mean = _quotient(np.where(known, stack, 0.0).sum(axis=0), count.astype(np.float64))
    largest = np.where(known, stack, -np.inf).max(axis=0)
    found += [mean, np.where(np.isinf(largest), np.nan, largest)]
    stack = np.stack(absolutes)
    known = ~np.isnan(stack)
    mean = _quotient(np.where(known, stack, 0.0).sum(axis=0), known.sum(axis=0).astype(np.float64))
    found.append(_log_quotient(mean, level))
    # Targets that are known now, relative to the level then: how rough the last hours were.
    return found


def _times(history: LoadHistory, first: int, last: int) -> list[FloatArray]:
    times = history.start_seconds + history.step_seconds * np.arange(first, last + 1, dtype=np.float64)
    of_day = times % DAY_SECONDS / DAY_SECONDS
    # 1 January 1970 was a Thursday.
    of_week = (times / DAY_SECONDS + 3) % 7
    return [of_day[np.newaxis, :], np.floor(of_week)[np.newaxis, :], (times % 3600.0)[np.newaxis, :]]
