"""Limits peaks that came only once to ten usual days, so that no wrong sample comes back on the days after (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.models.features import in_steps
from recommender.kinds.predictive.models.usual_days import (
    begins_of_days,
    in_each_step,
    largest_of_days,
    limits_of_days,
    limits_of_first_days,
)

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.history import LoadHistory

_RATIO: Final = 10.0
_SAME_TIME_SECONDS: Final = 3600.0
"""Peaks that are no further apart came at the same time of day; clocks are changed by an hour."""


@dataclass(frozen=True, slots=True)
class WithoutLonePeaks:
    """The values of a history without peaks that came once; both of shape (series, steps)."""

    at_first: FloatArray
    """The values while there is no usual day, with which the first days could be compared."""
    later: FloatArray
    since: IntArray
    """The step from which on `later` is known, for each series."""


def without_lone_peaks(history: LoadHistory) -> WithoutLonePeaks:
    """Return the values, in which no lone peak is more than ten times as large as the peak of a usual day.

    A counter whose whole value was taken for the increase of a minute would otherwise come back on each day that looks
    back at it. A season is what has come twice: a peak of at most ten times what an earlier day had at this time of day
    counts in full. Only the limits of the first days depend on later days.
    """
    values, step = history.values, history.step_seconds
    begins = begins_of_days(history.steps, round(history.start_seconds / step), in_steps(DAY_SECONDS, step))
    peaks = largest_of_days(values, begins)
    usual = limits_of_days(peaks, _RATIO)
    first, since = limits_of_first_days(peaks, _RATIO)
    beginning = np.append(begins, history.steps)[since]
    if not (peaks > np.minimum(usual, first)).any():
        return WithoutLonePeaks(values, values, beginning)
    seen = _RATIO * _at_this_time_before(values, step)

    def limited(most: FloatArray) -> FloatArray:
        return np.asarray(np.minimum(values, np.maximum(in_each_step(most, begins, history.steps), seen)))

    at_first = limited(usual)
    later = limited(np.minimum(usual, first)) if (peaks > first).any() else at_first
    return WithoutLonePeaks(at_first, later, beginning)


def _at_this_time_before(values: FloatArray, step_seconds: float) -> FloatArray:
    """Return the largest value of all earlier days at about the time of day of each step; 0 without any."""
    series, steps = values.shape
    day, around = in_steps(DAY_SECONDS, step_seconds), int(_SAME_TIME_SECONDS / step_seconds)
    after = -steps % day
    padded = np.pad(np.nan_to_num(values), ((0, 0), (around, after + around)))
    largest = sliding_window_view(padded, 2 * around + 1, axis=1).max(axis=2).reshape(series, -1, day)
    before = np.zeros(largest.shape)
    before[:, 1:] = np.maximum.accumulate(largest, axis=1)[:, :-1]
    return before.reshape(series, -1)[:, :steps]
