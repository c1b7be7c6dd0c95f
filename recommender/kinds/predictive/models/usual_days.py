"""Limits samples to a multiple of usual days: a wrong sample may be as large as weeks of load (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray, IntArray

LEAST_DAYS: Final = 3
"""With fewer known days, no day is usual, and samples stay as they are."""
_DAYS_BACK: Final = 7


def begins_of_days(steps: int, phase: int, day: int) -> IntArray:
    """Return the places at which days begin, the first of which is 0.

    Days begin at the multiples of `day`, in steps, and the first value has the number `phase`.
    """
    begins = np.arange(-phase % day, steps, day)
    return begins if begins.size and begins[0] == 0 else np.concatenate([[0], begins])


def limited_by_usual_days(values: FloatArray, begins: IntArray, of_days: FloatArray, ratio: float) -> FloatArray:
    """Return the values, none of which is more than `ratio` times that of a usual day, as `limits_of_days` says.

    `of_days` has a figure for each day, shape (series, days).
    """
    most = limits_of_days(of_days, ratio)
    if not (largest_of_days(values, begins) > most).any():
        return values
    return np.asarray(np.minimum(values, in_each_step(most, begins, values.shape[1])))


def limits_of_days(of_days: FloatArray, ratio: float) -> FloatArray:
    """Return `ratio` times the figure of a usual day, the median of the last seven known days before each day.

    It is infinite with fewer than three of them, or if a usual day has 0.
    """
    most = np.full(of_days.shape, np.inf)
    known, places = _known_first(of_days)
    for number in range(LEAST_DAYS, known.shape[1]):
        days = np.sort(known[:, max(0, number - _DAYS_BACK) : number], axis=1)
        median = days[:, (days.shape[1] - 1) // 2]
        limits = np.where(median > 0, ratio * median, np.inf)
        np.put_along_axis(most, places[:, number : number + 1], limits[:, np.newaxis], axis=1)
    return most


def limits_of_first_days(of_days: FloatArray, ratio: float) -> tuple[FloatArray, IntArray]:
    """Return the limits of the first three known days, by the median of the other three of the first four.

    They are infinite for other days. The second result is the number of the day, after the fourth known one, from
    which on they are known; one beyond all days if there are fewer.
    """
    most, since = np.full(of_days.shape, np.inf), np.full(len(of_days), of_days.shape[1])
    known, places = _known_first(of_days)
    known = known[:, : LEAST_DAYS + 1]
    if known.shape[1] <= LEAST_DAYS:
        return most, since
    for number in range(LEAST_DAYS):
        median = np.median(np.delete(known, number, axis=1), axis=1)
        limits = np.where(median > 0, ratio * median, np.inf)
        np.put_along_axis(most, places[:, number : number + 1], limits[:, np.newaxis], axis=1)
    return most, np.where(np.isnan(known[:, -1]), since, places[:, LEAST_DAYS] + 1)


def _known_first(of_days: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the figures of the days, those of known days first, and the number of each day; both in order of time."""
    places = np.argsort(np.isnan(of_days), axis=1, kind="stable")
    return np.take_along_axis(of_days, places, axis=1), places


def in_each_step(of_days: FloatArray, begins: IntArray, steps: int) -> FloatArray:
    """Return the figure of its day for each step, shape (series, steps)."""
    return np.repeat(of_days, np.diff(begins, append=steps), axis=1)


def largest_of_days(values: FloatArray, begins: IntArray) -> FloatArray:
    """Return the largest known value of each day, shape (series, days); NaN for a day without any."""
    return np.asarray(np.fmax.reduceat(values, begins, axis=1))
