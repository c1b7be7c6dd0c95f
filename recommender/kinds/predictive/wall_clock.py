"""Local time of day and day of the week: people come at nine by their clocks, also when these have been changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

import numpy as np

from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from recommender.kinds.predictive.history import DAY_SECONDS

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.history import LoadHistory

UTC_NAME: Final = "UTC"
_QUARTER_SECONDS: Final = 900.0
"""Clocks are changed at full quarters of an hour, seen from UTC."""
_QUARTERS_A_DAY: Final = int(DAY_SECONDS / _QUARTER_SECONDS)
_EARLIEST_SECONDS: Final = 0.0
_LATEST_SECONDS: Final = 4_102_444_800.0
"""The year 2100: times outside of these two have the offset of the nearer one."""


@dataclass(frozen=True, slots=True)
class WallClock:
    """The clocks of those who make the load."""

    timezone: str = UTC_NAME
    """IANA name, such as `Europe/Berlin`."""

    def offsets_seconds(self, times: FloatArray) -> FloatArray:
        """Return by how much local time is ahead of UTC at each time, in seconds since the Unix epoch."""
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

    def weekdays(self, times: FloatArray) -> IntArray:
        """Return the local day of the week at each time; Monday is 0."""
        # 1 January 1970 was a Thursday.
        days = (times + self.offsets_seconds(times)) // DAY_SECONDS + 3
        return np.asarray(days % 7, dtype=np.int64)

    def same_time(self, history: LoadHistory, steps: IntArray, days: int) -> IntArray:
        """Return the step so many days earlier at which clocks showed the same; it may lie before the history.

        Where clocks that went forward never showed it, it is as long after the change.
        """
        step_seconds = history.step_seconds
        times, back = history.times_of(steps), days * DAY_SECONDS
        moved = self.offsets_seconds(times) - self.offsets_seconds(times - back)
        return np.asarray(steps - np.rint((back - moved) / step_seconds), dtype=np.int64)

    def moved_steps(self, start_seconds: float, step_seconds: float, count: int) -> IntArray:
        """Return by how many steps clocks have gone forward since the first one, for so many steps; shape (count,)."""
        times = start_seconds + step_seconds * np.arange(count, dtype=np.float64)
        offsets = self.offsets_seconds(times)
        return np.asarray(np.rint((offsets - offsets[:1]) / step_seconds), dtype=np.int64)


@bounded_cache(MEBIBYTE)
def _changes(timezone: str, first_day: int, last_day: int) -> tuple[tuple[float, float], ...]:
    """Return from when on which offset holds, in seconds, from midnight UTC of the first day to the end of the last."""
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
