"""Features without a unit: the load of the last hours, of yesterday and of last week, relative to now.

Everything is relative to the current level or is a time, so that one model serves series of any size. Near zero, a
ratio is meaningless. So a floor, the typical step-to-step change of the last week's load, is added to both sides of
each ratio: noise of that size is then no growth, and the rise when a closed shop opens is finite. Each feature is
computed for a contiguous range of origins from as much of the history as it needs, which is cheap both for all origins
of one series and for the last origin of many series.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.history import DAY_SECONDS, WEEK_SECONDS, LoadHistory
from recommender.kinds.predictive.holiday_evidence import by_kind_of_day
from recommender.kinds.predictive.models.usual_days import begins_of_days, limited_by_usual_days

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.forecast import ForecastTask

MINUTE_SECONDS = 60.0
HOUR_SECONDS = 60 * MINUTE_SECONDS
LEVEL_SECONDS = 5 * MINUTE_SECONDS
LEAST_FLOOR_RATIO = 0.01
"""The floor is at least this share of the mean load of the last week."""
SMALLEST_RATIO = 1e-6
"""The smallest ratio, so that the logarithm is finite where rounding leaves 0."""
MEAN_SECONDS = (0.0, *(each * MINUTE_SECONDS for each in (2, 10, 15, 30, 60, 180, 360)), DAY_SECONDS)
DEVIATION_SECONDS = (15 * MINUTE_SECONDS, HOUR_SECONDS, 3 * HOUR_SECONDS)
MAXIMUM_SECONDS = (5 * MINUTE_SECONDS, 15 * MINUTE_SECONDS, HOUR_SECONDS, 3 * HOUR_SECONDS)
SLOPE_SECONDS = (5 * MINUTE_SECONDS, 15 * MINUTE_SECONDS, HOUR_SECONDS)
AHEAD_SECONDS = 30 * MINUTE_SECONDS
DAYS_BACK = 7
FEATURE_DECIMALS = 6
SERIES_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class StepRange:
    """Windows of one history that end at each step of a range; shape (series, steps of the range)."""

    values: FloatArray
    first: int
    last: int

    def back(self, steps: int) -> StepRange:
        """Return the windows of the range that lies this many steps earlier."""
        return StepRange(self.values, self.first - steps, self.last - steps)

    def _reach(self, steps: int) -> FloatArray:
        """Return the values within windows of this many steps; NaN before and after the history."""
        begin, end = self.first - steps + 1, self.last + 1
        size = self.values.shape[1]
        inside = self.values[:, min(max(begin, 0), size) : min(max(end, 0), size)]
        before = min(max(0, -begin), end - begin)
        after = end - begin - before - inside.shape[1]
        return np.pad(inside, ((0, 0), (before, after)), constant_values=np.nan) if before or after else inside

    def mean(self, steps: int) -> FloatArray:
        """Return the mean of the known values in each window of this many steps; NaN where there are none."""
        reach = self._reach(steps)
        known = ~np.isnan(reach)
        return _quotient(_sums(np.where(known, reach, 0.0), steps), _sums(known.astype(np.float64), steps))

    def deviation(self, steps: int) -> FloatArray:
        """Return the standard deviation in each window of this many steps."""
        begin = max(self.first - steps + 1, 0)
        squares = StepRange(np.square(self.values[:, begin : self.last + 1]), self.first - begin, self.last - begin)
        return np.asarray(np.sqrt(np.maximum(squares.mean(steps) - np.square(self.mean(steps)), 0.0)))

    def maximum(self, steps: int) -> FloatArray:
        """Return the largest known value in each window of this many steps; NaN where there are none."""
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
    found = np.full(np.broadcast_shapes(above.shape, below.shape), np.nan)
    with np.errstate(over="ignore"):
        # A ratio to nearly 0 may be infinite, and is then ignored.
        np.divide(above, below, out=found, where=below > 0)
    found[np.isinf(found)] = np.nan
    return found


@dataclass(frozen=True, slots=True)
class Level:
    """The current level of the load at each origin, shape (series, origins).

    The floor is added to the numerator and the denominator of ratios of loads.
    """

    load: FloatArray
    """The mean of the last five minutes; NaN where it is unknown."""
    floor: FloatArray

    def log_ratio(self, above: FloatArray, below: FloatArray | None = None) -> FloatArray:
        """Return the logarithm of a load relative to another one or to the level; NaN where there never was a load."""
        found = _quotient(above + self.floor, (self.load if below is None else below) + self.floor)
        return np.asarray(np.log(np.maximum(found, SMALLEST_RATIO)))

    def load_of(self, log_ratio: FloatArray) -> FloatArray:
        """Return the load that has this logarithm relative to the level."""
        return np.maximum((self.load + self.floor) * np.exp(log_ratio) - self.floor, 0.0)


def levels(history: LoadHistory, first: int, last: int) -> Level:
    """Return the level of each origin from first to last."""
    step, phase = history.step_seconds, round(history.start_seconds / history.step_seconds)
    week, day = in_steps(WEEK_SECONDS, step), in_steps(DAY_SECONDS, step)
    # With the whole days with which the values of the last week are compared.
    begin = max(0, ((first - week + phase) // day - DAYS_BACK) * day - phase)
    values = history.values[:, begin : last + 1]
    before = history.values[:, max(0, begin - 1)][:, np.newaxis]
    around, moves = (
        StepRange(without_outliers(each, phase + begin, day), first - begin, last - begin)
        for each in (values, np.abs(np.diff(values, axis=1, prepend=before)))
    )
    floor = np.fmax(moves.mean(week), LEAST_FLOOR_RATIO * around.mean(week))
    load = StepRange(values, first - begin, last - begin).mean(in_steps(LEVEL_SECONDS, step))
    return Level(load, np.maximum(floor, 0.0))


def without_outliers(values: FloatArray, phase: int, day: int) -> FloatArray:
    """Return the values, none of which counts for more than a week whose days are as the median of the last seven.

    A counter whose whole value was taken for the increase of a minute is as large as weeks of load; a floor of its size
    would leave nothing of all ratios of a week. The first value has the number `phase` among the steps of `day`.
    """
    begins = begins_of_days(values.shape[1], phase, day)
    known = ~np.isnan(values)
    counts = np.add.reduceat(known, begins, axis=1, dtype=np.float64)
    means = _quotient(np.add.reduceat(np.where(known, values, 0.0), begins, axis=1), counts)
    return limited_by_usual_days(values, begins, means, DAYS_BACK * day)


def in_steps(seconds: float, step_seconds: float) -> int:
    """Return the nearest number of steps, at least one."""
    return max(1, round(seconds / step_seconds))


def features(history: LoadHistory, first: int, last: int, task: ForecastTask) -> FloatArray:
    """Return the features of origins first … last; shape (series, origins, features), NaN where unknown."""
    origins = np.arange(first, last + 1, dtype=np.int64)
    return by_kind_of_day(lambda kind: _features(history, first, last, kind), history, origins, task)


def rows_to_predict(
    history: LoadHistory, origins: IntArray, task: ForecastTask
) -> Iterator[tuple[slice, Level, FloatArray]]:
    """Yield the levels of some series at the origins and a row of features for each of them, a few series at a time."""
    first, last = int(origins.min()), int(origins.max())
    for begin in range(0, len(history.values), SERIES_AT_ONCE):
        some = slice(begin, begin + SERIES_AT_ONCE)
        part = LoadHistory(history.start_seconds, history.step_seconds, history.values[some])
        level = levels(part, first, last)
        rows = features(part, first, last, task)[:, origins - first]
        at_origins = Level(level.load[:, origins - first], level.floor[:, origins - first])
        yield some, at_origins, rows.reshape(-1, rows.shape[2])


def _features(history: LoadHistory, first: int, last: int, task: ForecastTask) -> FloatArray:
    step = history.step_seconds
    around = StepRange(history.values, first, last)
    level = levels(history, first, last)
    columns = [level.log_ratio(around.mean(w)) for w in _unique(MEAN_SECONDS, step)]
    size = level.load + level.floor
    columns += [_quotient(around.deviation(max(w, 3)), size) for w in _unique(DEVIATION_SECONDS, step)]
    columns += [level.log_ratio(around.maximum(w)) for w in _unique(MAXIMUM_SECONDS, step) if w > 1]
    columns += [level.log_ratio(around.mean(w), around.back(w).mean(w)) for w in _unique(SLOPE_SECONDS, step)]
    columns += _seasons(history, around, level, task)
    columns += _times(history, first, last, task)
    # The last bits of sums depend on where they begin; they are rounded, so that no threshold of a tree lies between.
    found = np.stack([np.broadcast_to(column, level.load.shape) for column in columns], axis=2)
    return np.asarray(np.round(found, FEATURE_DECIMALS), dtype=np.float64)


def _unique(seconds: tuple[float, ...], step: float) -> list[int]:
    return sorted({in_steps(each, step) for each in seconds})


@dataclass(frozen=True, slots=True)
class _Then:
    """Windows that end at steps of an earlier day, which need not be consecutive if clocks were changed."""

    around: StepRange
    places: IntArray
    """The position of each of the steps in the range."""

    def of(self, windows: FloatArray) -> FloatArray:
        """Return the columns of the steps from the columns of the whole range."""
        is_whole = np.array_equal(self.places, np.arange(windows.shape[1]))
        return windows if is_whole else windows[:, self.places]


def _then(history: LoadHistory, steps: IntArray, days: int, latest: IntArray, task: ForecastTask) -> _Then:
    at = np.minimum(task.clock.same_time(history, steps, days), latest)
    first = int(at.min())
    return _Then(StepRange(history.values, first, int(at.max())), at - first)


def _seasons(history: LoadHistory, around: StepRange, level: Level, task: ForecastTask) -> list[FloatArray]:
    """Return the features of the same time on the last seven days; each of its windows was over before the origin."""
    step = history.step_seconds
    day, hour, ahead = in_steps(DAY_SECONDS, step), in_steps(HOUR_SECONDS, step), in_steps(AHEAD_SECONDS, step)
    reach, window = task.lead_steps(step) + task.window_steps(step) - 1, task.window_steps(step)
    if reach + 1 + ahead > day:
        return []
    found, rises, heights = [], [], []
    origins = np.arange(around.first, around.last + 1)
    for days in range(1, DAYS_BACK + 1):
        begin = _then(history, origins, days, origins, task)
        end = _then(history, origins + reach, days, origins - ahead, task)
        then_level = begin.of(begin.around.mean(in_steps(LEVEL_SECONDS, step)))
        target = end.of(end.around.maximum(window))
        rises.append(level.log_ratio(target, then_level))
        heights.append(target)
        if days in (1, DAYS_BACK):
            then_hour = begin.of(begin.around.mean(hour))
            found += [
                rises[-1],
                level.log_ratio(end.of(end.around.back(-ahead).maximum(window + ahead)), then_level),
                level.log_ratio(end.of(end.around.mean(reach + 1)), then_hour),
                level.log_ratio(around.mean(hour), then_hour),
                level.log_ratio(target),
            ]
    mean, largest = level.log_ratio(_mean_known(heights)), level.log_ratio(_largest_known(heights))
    return [*found, _mean_known(rises), _largest_known(rises), mean, largest]


def _mean_known(days: list[FloatArray]) -> FloatArray:
    stack = np.stack(days)
    known = ~np.isnan(stack)
    return _quotient(np.where(known, stack, 0.0).sum(axis=0), known.sum(axis=0).astype(np.float64))


def _largest_known(days: list[FloatArray]) -> FloatArray:
    stack = np.stack(days)
    largest = np.where(np.isnan(stack), -np.inf, stack).max(axis=0)
    return np.where(np.isinf(largest), np.nan, largest)


def _times(history: LoadHistory, first: int, last: int, task: ForecastTask) -> list[FloatArray]:
    times = history.times_of(np.arange(first, last + 1))
    of_day = task.clock.times_of_day(times)
    weekdays = task.clock.weekdays(times).astype(np.float64)
    return [(of_day / DAY_SECONDS)[np.newaxis, :], weekdays[np.newaxis, :], (of_day % HOUR_SECONDS)[np.newaxis, :]]
