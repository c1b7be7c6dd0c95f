"""Load of the past on a regular grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray, IntArray

DAY_SECONDS = 86_400.0
WEEK_SECONDS = 7 * DAY_SECONDS


@dataclass(frozen=True, slots=True)
class LoadHistory:
    """Load of several series on one grid. A step is known when it is over."""

    start_seconds: float
    """The time of the first step, in Unix seconds."""
    step_seconds: float
    values: FloatArray
    """Shape (series, steps), oldest step first; never negative; NaN where the load is unknown."""

    @property
    def steps(self) -> int:
        """Return how many steps there are."""
        return int(self.values.shape[1])

    @property
    def first(self) -> int:
        """Return the number of the first step, counted from the Unix epoch."""
        return round(self.start_seconds / self.step_seconds)

    @property
    def span_seconds(self) -> float:
        """Return how much time the steps cover."""
        return self.steps * self.step_seconds

    def until(self, steps: int) -> LoadHistory:
        """Return the first steps up to this number, which were known at that time. The array is shared, not copied."""
        return LoadHistory(self.start_seconds, self.step_seconds, self.values[:, :steps])

    def between(self, first: int, end: int) -> LoadHistory:
        """Return the steps from `first` on, before `end`. The array is shared, not copied."""
        return LoadHistory(self.start_seconds + first * self.step_seconds, self.step_seconds, self.values[:, first:end])

    def times(self) -> FloatArray:
        """Return the time of each step, in Unix seconds; shape (steps,)."""
        return self.times_of(np.arange(self.steps, dtype=np.int64))

    def times_of(self, steps: IntArray) -> FloatArray:
        """Return the times of steps, which may lie outside the history, in Unix seconds."""
        return np.asarray(self.start_seconds + self.step_seconds * steps, dtype=np.float64)


def of_one_series(start_seconds: float, step_seconds: float, values: FloatArray) -> LoadHistory:
    """Return the history of a single series from its values, shape (steps,)."""
    return LoadHistory(start_seconds, step_seconds, np.asarray(values, dtype=np.float64)[np.newaxis, :])
