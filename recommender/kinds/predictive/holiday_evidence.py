"""Determines from the holidays so far, including today, whether a load's holidays resemble its Sundays.

Not every load is lower on a holiday: machines go on working, and a shop sells more. So each holiday in the history, and
the past part of today, is compared with the last Sunday and with the last ordinary day of its weekday.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.history import DAY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.kinds.predictive.arrays import BoolArray, FloatArray, IntArray
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.history import LoadHistory

LEAST_EVIDENCE_HOURS: Final = 1.0
"""Holidays are not treated as Sundays once their load has been further from Sunday's load than from that of their
weekday, by a factor of e for this many hours."""
_FLOOR_RATIO: Final = 0.01
"""Near zero, a ratio is meaningless, so this share of the mean load is added to both of its sides."""
_REACH_DAYS: Final = 35
"""A day that comes more than this many days after the last holiday is compared with no holiday."""
_WEEK: Final = 7


def by_kind_of_day(
    make: Callable[[ForecastTask], FloatArray], history: LoadHistory, origins: IntArray, task: ForecastTask
) -> FloatArray:
    """Return the values for each origin, computed with the holidays of the clock or as if there were none.

    `make` returns an array of shape (series, origins, …). Nothing later than an origin affects it.
    """
    plain = replace(task, clock=task.clock.without_holidays)
    if not (task.clock.holidays and origins.size and _has_holiday(history, origins, task)):
        return make(plain)
    rests = rests_on_holidays(history, task)[:, origins]
    with_holidays, without = make(task), make(plain)
    return np.where(rests.reshape(rests.shape + (1,) * (with_holidays.ndim - 2)), with_holidays, without)


def rests_on_holidays(history: LoadHistory, task: ForecastTask) -> BoolArray:
    """Return whether each series' holidays resemble Sundays, by the data known at each step; shape (series, steps)."""
    clock, values = task.clock, history.values
    steps = np.arange(history.steps, dtype=np.int64)
    steps = steps[clock.is_holiday(clock.days(history.times()))]
    found = np.ones(values.shape, dtype=bool)
    if not steps.size:
        return found
    sunday, weekday = clock.same_time(history, steps, _WEEK), clock.without_holidays.same_time(history, steps, _WEEK)
    is_usable = (sunday >= 0) & (weekday >= 0)
    is_usable &= ~clock.is_holiday(clock.days(history.times_of(weekday)))
    steps, sunday, weekday = steps[is_usable], sunday[is_usable], weekday[is_usable]
    # The mean of the values known at the step.
    known = ~np.isnan(values)
    means = np.cumsum(np.where(known, values, 0.0), axis=1) / np.maximum(np.cumsum(known, axis=1), 1)
    floor = np.maximum(_FLOOR_RATIO * means[:, steps], np.finfo(np.float64).tiny)

    def miss(then: IntArray) -> FloatArray:
        return np.asarray(np.abs(np.log((values[:, steps] + floor) / (values[:, then] + floor))))

    evidence = np.zeros(values.shape)
    evidence[:, steps] = np.nan_to_num(miss(sunday) - miss(weekday)) * history.step_seconds / 3600
    return np.asarray(np.cumsum(evidence, axis=1) < LEAST_EVIDENCE_HOURS)


def _has_holiday(history: LoadHistory, origins: IntArray, task: ForecastTask) -> bool:
    """Return whether a holiday is near enough to any of the origins to change the days that they look back at."""
    first, last = history.times_of(origins[[0, -1]]) + task.lead_seconds * np.array([0.0, 1.0])
    ahead = task.window_seconds + DAY_SECONDS
    days = np.arange(first - _REACH_DAYS * DAY_SECONDS, last + ahead + DAY_SECONDS, DAY_SECONDS)
    return bool(task.clock.is_holiday(task.clock.days(days)).any())
