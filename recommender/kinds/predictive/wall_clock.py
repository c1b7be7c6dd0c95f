"""Local time of day and day of the week: people arrive at nine by the clock, even after clocks have been changed.

With `holidays`, a public holiday counts as a Sunday: models look back from it at earlier Sundays and Saturdays, and
never look back at it from another day.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

import numpy as np

from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.public_holidays import holiday_dates

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray, IntArray
    from recommender.kinds.predictive.history import LoadHistory

UTC_NAME: Final = "UTC"
_QUARTER_SECONDS: Final = 900.0
"""Clocks are changed only at whole quarters of an hour in UTC."""
_QUARTERS_A_DAY: Final = int(DAY_SECONDS / _QUARTER_SECONDS)
_EARLIEST_SECONDS: Final = 0.0
_LATEST_SECONDS: Final = 4_102_444_800.0
"""The year 2100. Times before `_EARLIEST_SECONDS` or after this have the offset of the nearer of the two."""
SUNDAY: Final = 6
_WEEK: Final = 7
_THURSDAY: Final = 3
"""1 January 1970 was a Thursday."""
_MOST_WEEKS_BACK: Final = 4
"""The largest number of weeks to look back: with Christmas, Boxing Day and New Year, the same weekday may be a holiday
three times."""


@dataclass(frozen=True, slots=True)
class WallClock:
    """The clocks of the people who cause the load."""

    timezone: str = UTC_NAME
    """IANA name, such as `Europe/Berlin`."""
    holidays: tuple[str, ...] = ()
    """Countries, or their parts, whose public holidays count as Sundays, such as `DE` or `DE-BY`."""

    @property
    def without_holidays(self) -> WallClock:
        """Return this clock without holidays, so that a holiday is an ordinary day of its weekday."""
        return replace(self, holidays=())

    def offsets_seconds(self, times: FloatArray) -> FloatArray:
        """Return how far local time is ahead of UTC at each time, in Unix seconds."""
        if self.timezone == UTC_NAME or not times.size:
            return np.zeros(times.shape)
        valid = np.clip(times, _EARLIEST_SECONDS, _LATEST_SECONDS)
        first, last = int(valid.min() // DAY_SECONDS), int(valid.max() // DAY_SECONDS)
        changes = _changes(self.timezone, first, last)
        begins, offsets = np.array(changes).T
        return np.asarray(offsets[np.searchsorted(begins, valid, side="right") - 1])

    def times_of_day(self, times: FloatArray) -> FloatArray:
        """Return the local time of day at each time, in seconds since midnight."""
        return np.asarray((times + self.offsets_seconds(times)) % DAY_SECONDS)

    def days(self, times: FloatArray) -> IntArray:
        """Return the local day at each time, in days since 1 January 1970."""
        return np.asarray((times + self.offsets_seconds(times)) // DAY_SECONDS, dtype=np.int64)

    def weekdays(self, times: FloatArray) -> IntArray:
        """Return the local day of the week at each time; Monday is 0, and a holiday is a Sunday, 6."""
        days = self.days(times)
        return np.where(self.is_holiday(days), SUNDAY, _weekdays(days))

    def is_holiday(self, days: IntArray) -> BoolArray:
        """Return which of the local days are holidays that are not Sundays anyway."""
        if not (self.holidays and days.size):
            return np.zeros(days.shape, dtype=bool)
        first, last = int(days.min()), int(days.max())
        return np.asarray(np.isin(days, holiday_dates(self.holidays, first, last)) & (_weekdays(days) != SUNDAY))

    def same_time(self, history: LoadHistory, steps: IntArray, days: int) -> IntArray:
        """Return the step `days` days earlier at which clocks showed the same time; it may lie before the history.

        If clocks went from 02:00 to 03:00 and skipped that time, such as 02:30, the step is that of 03:30. A holiday
        looks back from the Sunday that it replaces. A day that is a holiday or not over yet is replaced by the day a
        week earlier.
        """
        step_seconds = history.step_seconds
        times = history.times_of(steps)
        back = self._days_back(times, days) * DAY_SECONDS
        moved = self.offsets_seconds(times) - self.offsets_seconds(times - back)
        return np.asarray(steps - np.rint((back - moved) / step_seconds), dtype=np.int64)

    def _days_back(self, times: FloatArray, count: int) -> IntArray:
        """Return how many days to look back from each time to reach the day that stands for `count` days earlier."""
        if not (self.holidays and times.size):
            return np.full(times.shape, count, dtype=np.int64)
        days = self.days(times)
        then = days + np.where(self.is_holiday(days), SUNDAY - _weekdays(days), 0) - count
        for _ in range(_MOST_WEEKS_BACK):
            then = np.where((then >= days) | self.is_holiday(then), then - _WEEK, then)
        return np.asarray(days - then, dtype=np.int64)

    def moved_steps(self, start_seconds: float, step_seconds: float, count: int) -> IntArray:
        """Return how many steps clocks have gone forward since the first step, for `count` steps; shape (count,)."""
        times = start_seconds + step_seconds * np.arange(count, dtype=np.float64)
        offsets = self.offsets_seconds(times)
        return np.asarray(np.rint((offsets - offsets[:1]) / step_seconds), dtype=np.int64)


def _weekdays(days: IntArray) -> IntArray:
    return np.asarray((days + _THURSDAY) % _WEEK, dtype=np.int64)


@bounded_cache(MEBIBYTE)
def _changes(timezone: str, first_day: int, last_day: int) -> tuple[tuple[float, float], ...]:
    """Return each UTC offset with the second at which it begins, from the first day to the end of the last, in UTC."""
    zone = ZoneInfo(timezone)
    found = [(first_day * DAY_SECONDS, _offset(zone, first_day * DAY_SECONDS))]
    for day in range(first_day, last_day + 1):
        before, after = day * _QUARTERS_A_DAY, (day + 1) * _QUARTERS_A_DAY
        offset = _offset(zone, after * _QUARTER_SECONDS)
        if offset == found[-1][1]:
            continue
        while after - before > 1:
            middle = (before + after) // 2
            if _offset(zone, middle * _QUARTER_SECONDS) == offset:
                after = middle
            else:
                before = middle
        found.append((after * _QUARTER_SECONDS, offset))
    return tuple(found)


def _offset(zone: ZoneInfo, time: float) -> float:
    offset = datetime.fromtimestamp(time, UTC).astimezone(zone).utcoffset()
    assert offset is not None, "every zone has an offset"
    return offset.total_seconds()
