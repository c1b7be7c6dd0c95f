"""The same time of other days, scaled to the level of today; and the same, held for the start-up time of pods.

The forecast is the current level times the growth on earlier days: the largest load of the target's window then,
relative to the level then. The days are yesterday to a week ago and two weeks ago. A holiday, or a day with twice the
load, is thus forecast with the shape of those days and its own height.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.calibration import calibrate, in_blocks
from recommender.kinds.predictive.forecast import Forecasts, Model, no_fit
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory
from recommender.kinds.predictive.holiday_evidence import by_kind_of_day
from recommender.kinds.predictive.models.load_at_origin import limit_growth, limited_points
from recommender.kinds.predictive.models.lone_peaks import without_lone_peaks
from recommender.kinds.predictive.predictive_settings import ModelName

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.forecast import ForecastTask

LEVEL_SECONDS = 1800.0
LEAST_LEVEL_STEPS = 2
DAYS_BACK = (1, 2, 3, 4, 5, 6, 7, 14)
SAME_WEEKDAY_WEIGHT = 2.0
LARGEST_RISE = 10.0
"""The largest factor for the excess of today's load over an earlier day's, because a load near 0 may rise by any
factor."""
OTHER_KIND_WEIGHT = 0.01
"""The weight of a day of the other kind, because a working day says little about a weekend, but more than nothing."""
BLOCK_SAMPLES = 400_000
"""Series are processed in blocks that mostly stay in a processor's cache."""


@dataclass(frozen=True, slots=True)
class _Past:
    """The days that forecasts look back at; all of shape (series, steps)."""

    history: LoadHistory
    levels: FloatArray
    peaks: FloatArray


def _forecast(_parameters: None, history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
    rows = max(1, BLOCK_SAMPLES // max(1, history.steps))
    return in_blocks(lambda block: _forecast_block(block, origins, task), history, origins, rows)


def _forecast_block(history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
    found = without_lone_peaks(history)
    levels = _levels(history)
    later = _past(history, found.later, levels, task)
    at_first = later if found.at_first is found.later else _past(history, found.at_first, levels, task)

    def point(steps: IntArray) -> FloatArray:
        present = np.take(levels, steps, axis=1)
        points = by_kind_of_day(lambda kind: _points(later, present, steps, kind), history, steps, task)
        is_first = steps < found.since[:, np.newaxis]
        if at_first is not later and is_first.any():
            first_points = by_kind_of_day(lambda kind: _points(at_first, present, steps, kind), history, steps, task)
            points = np.where(is_first, first_points, points)
        return limited_points(points, history, steps, task.max_growth, task.lead_seconds)

    return limit_growth(calibrate(point, history, origins, task), history, origins, task.max_growth, task.lead_seconds)


def _past(history: LoadHistory, values: FloatArray, levels: FloatArray, task: ForecastTask) -> _Past:
    """Return the days of a history with these values in place of its own, whose levels are given."""
    if values is history.values:
        return _Past(history, levels, _peaks(history, task))
    usual = LoadHistory(history.start_seconds, history.step_seconds, values)
    return _Past(usual, _levels(usual), _peaks(usual, task))


def _points(past: _Past, present: FloatArray, origins: IntArray, task: ForecastTask) -> FloatArray:
    """Return the forecasts from a present level, shape (series, origins)."""
    history, levels, peaks = past.history, past.levels, past.peaks
    shape = (len(levels), len(origins))
    peak, level, weight = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    lead, window = task.lead_steps(history.step_seconds), task.window_steps(history.step_seconds)
    for days in DAYS_BACK:
        at = task.clock.same_time(history, origins, days)
        # Clocks may be changed between origin and target, today or then.
        at_peak = task.clock.same_time(history, origins + lead, days) - lead
        # The window of that day must be over.
        usable = (np.minimum(at, at_peak) >= 0) & (np.maximum(at, at_peak + lead + window - 1) <= origins)
        if not usable.any():
            continue
        peak_then = np.take(peaks, np.where(usable, at_peak, 0), axis=1)
        level_then = _levels_then(history, levels, origins, np.where(usable, at, 0), task)
        counts = ~np.isnan(peak_then + level_then) & usable
        weights = np.where(counts, _weights(history, origins, days, task), 0.0)
        peak += weights * np.where(counts, peak_then, 0.0)
        level += weights * np.where(counts, level_then, 0.0)
        weight += weights
    weight[weight == 0] = np.nan
    peak, level = peak / weight, level / weight
    rise = np.full(shape, LARGEST_RISE)
    np.divide(peak, level, out=rise, where=LARGEST_RISE * level > peak)
    # Equal to `present * peak / level`, as long as that is no larger rise.
    points: FloatArray = peak + (present - level) * rise
    return points


def _weights(history: LoadHistory, origins: IntArray, days: int, task: ForecastTask) -> FloatArray:
    """Return the weight of an earlier day at each origin, by whether both days are working days or weekends."""
    if days % 7 == 0:
        return np.full(len(origins), SAME_WEEKDAY_WEIGHT)
    same = np.ones(len(origins), dtype=bool)
    # At midnight before a weekend, the present and the target are of different kinds, and so must be those of that day.
    for seconds in (0.0, task.lead_seconds):
        weekday = task.clock.weekdays(history.times_of(origins) + seconds)
        same &= (weekday >= 5) == ((weekday - days) % 7 >= 5)
    return np.where(same, 1.0, OTHER_KIND_WEIGHT)


def _levels(history: LoadHistory) -> FloatArray:
    """Return the mean of the known values of the last half hour at each step; NaN if fewer than half are known."""
    steps = _level_steps(history)
    possible = np.minimum(np.arange(1, history.steps + 1), steps)
    known = ~np.isnan(history.values)
    if known.all():
        return _sums(history.values, steps) / possible
    totals, counts = _sums(np.where(known, history.values, 0.0), steps), _sums(known.astype(np.float64), steps)
    return np.where(2 * counts >= possible, totals / np.maximum(counts, 1.0), np.nan)


def _level_steps(history: LoadHistory) -> int:
    return max(LEAST_LEVEL_STEPS, int(LEVEL_SECONDS / history.step_seconds))


def _levels_then(
    history: LoadHistory, levels: FloatArray, origins: IntArray, at: IntArray, task: ForecastTask
) -> FloatArray:
    """Return the levels of an earlier day, whose step `at` corresponds to the origin.

    For half an hour after clocks have been changed, each step of the level has its own counterpart by local time: the
    half hour before 02:00 says nothing about a half hour in which clocks went from 02:30 to 03:00 and back to 02:00.
    """
    found = np.take(levels, at, axis=1)
    steps = _level_steps(history)

    def moved(some: IntArray, back: IntArray) -> FloatArray:
        offsets = task.clock.offsets_seconds
        return offsets(history.times_of(some - back)) - offsets(history.times_of(some))

    first = np.full(len(origins), steps - 1)
    changed = np.flatnonzero(moved(origins, first) != moved(at, first))
    if changed.size:
        back = np.arange(steps)[:, np.newaxis]
        ahead = (moved(origins[changed], back) - moved(at[changed], back)) / history.step_seconds
        places = at[changed] - back + np.rint(ahead).astype(np.int64)
        # Clocks that went forward on that day never showed some times.
        shown, wanted = (task.clock.times_of_day(history.times_of(each)) for each in (places, origins[changed] - back))
        usable = (places >= 0) & (np.abs(shown - wanted) < history.step_seconds / 2)
        values = np.where(usable, history.values[:, np.clip(places, 0, history.steps - 1)], np.nan)
        counts = (~np.isnan(values)).sum(axis=1)
        found[:, changed] = np.where(2 * counts >= steps, np.nansum(values, axis=1) / np.maximum(counts, 1), np.nan)
    return found


def _sums(values: FloatArray, steps: int) -> FloatArray:
    """Return the sum of the last `steps` values at each step.

    It is composed of sums of 1, 2, 4, … values: differences of a cumulative sum would turn 0 into a rounding error, by
    which a level must not be divided.
    """
    sums, block = np.zeros(values.shape), values.copy()
    taken, width = 0, 1
    while taken < min(steps, values.shape[1]):
        if steps & width:
            sums[:, taken:] += block[:, : values.shape[1] - taken]
            taken += width
        block[:, width:] = block[:, width:] + block[:, :-width]
        width *= 2
    return sums


def _peaks(history: LoadHistory, task: ForecastTask) -> FloatArray:
    """Return the target of each step as origin, even if the end of its window is not known yet."""
    lead, window = task.lead_steps(history.step_seconds), task.window_steps(history.step_seconds)
    peaks = np.full(history.values.shape, np.nan)
    for ahead in range(lead, min(lead + window, history.steps)):
        peaks[:, :-ahead] = np.fmax(peaks[:, :-ahead], history.values[:, ahead:])
    return peaks


SEASONAL = Model(ModelName.SEASONAL, 2 * DAY_SECONDS, no_fit, _forecast)


def _forecast_held(_parameters: None, history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
    """Return the largest of the upper forecasts from the origin and from the steps of one lead before it."""
    back = np.arange(task.lead_steps(history.step_seconds) + 1, dtype=np.int64)
    steps, places = np.unique(np.maximum(origins[:, np.newaxis] - back, 0), return_inverse=True)
    places = places.reshape(len(origins), len(back))
    made = SEASONAL.forecast(None, history, steps, task)
    median, upper = made.median[:, places[:, 0]], made.upper[:, places[:, 0]]
    held = upper
    for ago in range(1, len(back)):
        held = np.fmax(held, made.upper[:, places[:, ago]])
    found = Forecasts(median, np.where(np.isnan(upper), np.nan, held))
    return limit_growth(found, history, origins, task.max_growth, task.lead_seconds)


SEASONAL_HELD = Model(ModelName.SEASONAL_HELD, SEASONAL.least_history_seconds, no_fit, _forecast_held)
"""The seasonal forecasts, each of which is held for the start-up time of pods, until the predicted load is over.

A forecast covers the time after its lead; nearer times were covered by earlier forecasts. A pod that is removed
meanwhile disappears at once and takes the whole start-up time to return, so that it is missing in a short peak after a
valley. The capacity of each forecast is therefore held for the lead, in the same way as the down window holds its
largest size, and its pods serve throughout. This costs more, and pays off if load rises and falls by the clock within a
start-up time.
"""
