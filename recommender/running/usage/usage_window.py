"""The period from which sizes are computed, and the days and slices in which it is queried."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from recommender.kinds.resources.histograms import DAY_SECONDS

MOST_POINTS: Final = 600_000
"""The largest number of points in one answer, the text of which then has about 15 MB."""


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """Adjacent steps of one day; days are counted back from the end of the window.

    `start` and `end` are Unix seconds, and both belong to the slice.
    """

    day: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class SizeWindow:
    """The period of `seconds` before `end`."""

    end: float
    """Unix seconds, a whole multiple of the step of queries."""
    seconds: float

    @property
    def start(self) -> float:
        """Start of the window in Unix seconds."""
        return self.end - self.seconds

    @property
    def days(self) -> int:
        """The number of days, the oldest of which may be shorter than the others."""
        return math.ceil(self.seconds / DAY_SECONDS)

    def day_ends(self) -> Iterator[tuple[float, int]]:
        """Yield the end of each day in Unix seconds and its length in seconds, the newest day first."""
        for day in range(self.days):
            yield self.end - day * DAY_SECONDS, round(min(DAY_SECONDS, self.seconds - day * DAY_SECONDS))

    def slices(self, series: int, step_seconds: int) -> Iterator[TimeSlice]:
        """Yield slices that together contain each step once, none of them with many more than `MOST_POINTS` points."""
        most = max(1, MOST_POINTS // max(series, 1))
        steps = math.ceil(self.seconds / step_seconds)
        for day in range(self.days):
            newest = math.ceil(day * DAY_SECONDS / step_seconds)
            until = min(steps, math.ceil((day + 1) * DAY_SECONDS / step_seconds))
            for first in range(newest, until, most):
                last = min(first + most, until) - 1
                yield TimeSlice(day, self.end - last * step_seconds, self.end - first * step_seconds)
