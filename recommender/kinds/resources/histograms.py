"""Decaying histograms of usage, for many containers at once, with the buckets of Kubernetes' Vertical Pod Autoscaler.

A sample of age a has the weight 2 ** (-a / half-life). The histograms are stored by day, each as if its day had just
ended: their weighted sum is the decaying histogram, and sums of resampled days show how much it depends on single days.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

DAY_SECONDS: Final = 86_400.0
HALF_LIFE_SECONDS: Final = DAY_SECONDS
_COST_OF_TIME: Final = 20.0
"""The cost of usage that is above the request all the time, in multiples of the mean usage.

It was chosen on generated usage (`python -m benchmarks.sizes_backtest --made`) with seeds other than those that are
judged."""


@dataclass(frozen=True, slots=True)
class BucketScale:
    """Exponential buckets: the first one begins at 0, and each is `ratio` times as wide as the one before."""

    first: float
    """Width of the first bucket, in the unit of the values."""
    maximum: float
    """Values above this are in the last bucket."""
    ratio: float = 1.05

    @property
    def count(self) -> int:
        """Number of buckets."""
        return math.ceil(math.log(self.maximum * (self.ratio - 1) / self.first + 1, self.ratio)) + 1

    def bucket_of(self, values: FloatArray) -> IntArray:
        """Return the bucket of each value, which must be 0 or more."""
        found = np.floor(np.log1p(values * ((self.ratio - 1) / self.first)) / math.log(self.ratio))
        # Rounding may put the logarithm of the beginning of the second bucket, such as 10m, into the first one.
        return np.asarray(np.where(values < self.first, 0, np.clip(found, 1, self.count - 1)), dtype=np.int64)

    def ends(self) -> FloatArray:
        """Return the value that stands for each bucket: its end, or the start of the last one, which has no end."""
        numbers = np.minimum(np.arange(1, self.count + 1), self.count - 1)
        return np.asarray(self.first * (self.ratio**numbers - 1) / (self.ratio - 1), dtype=np.float64)


CPU_SCALE: Final = BucketScale(first=0.01, maximum=1000.0)
"""Buckets of CPU, in cores."""
MEMORY_SCALE: Final = BucketScale(first=1e7, maximum=1e12)
"""Buckets of memory, in bytes."""


class UsageHistograms:
    """The histograms of the rows (containers of workloads) for each day before a moment; day 0 is the last one."""

    def __init__(self, scale: BucketScale, days: int, rows: int) -> None:
        """Start without samples."""
        self.scale = scale
        self.weights = np.zeros((days, rows, scale.count), dtype=np.float32)
        """Weights by day, row and bucket."""

    def add(self, day: int, rows: IntArray, values: FloatArray, ages_seconds: FloatArray) -> None:
        """Add samples of one day; ages are measured back from the moment at which the histograms end."""
        buckets = self.weights.shape[2]
        weights = np.exp2((day * DAY_SECONDS - ages_seconds) / HALF_LIFE_SECONDS)
        flat = np.bincount(
            rows * buckets + self.scale.bucket_of(values), weights, minlength=self.weights.shape[1] * buckets
        )
        self.weights[day] += flat.reshape(self.weights.shape[1:])

    def cumulate(self, day_weights: FloatArray) -> FloatArray:
        """Return the weighted sum of the days as cumulative weights, shape (rows, buckets)."""
        combined = np.tensordot(day_weights.astype(np.float32), self.weights, axes=1)
        return np.asarray(np.cumsum(combined, axis=1, dtype=np.float64), dtype=np.float64)

    def day_weights(self, half_life_seconds: float = HALF_LIFE_SECONDS) -> FloatArray:
        """Return the weight of each day at the moment at which the histograms end."""
        ages = np.arange(self.weights.shape[0]) * DAY_SECONDS
        return np.asarray(np.exp2(-ages / half_life_seconds), dtype=np.float64)

    @property
    def days_with_samples(self) -> IntArray:
        """The number of days with samples, by row."""
        return np.asarray((self.weights.sum(axis=2) > 0).sum(axis=0), dtype=np.int64)


def percentiles(cumulated: FloatArray, scale: BucketScale, share: float) -> FloatArray:
    """Return, for each row of cumulative weights, the end of the first bucket by which `share` of the weight occurs.

    The result is NaN for a row without weight.
    """
    totals = cumulated[:, -1]
    # Rounding must not put the threshold above the sum: then no bucket would reach it.
    thresholds = np.minimum(share * totals, totals)
    places = np.argmax(cumulated >= thresholds[:, None], axis=1)
    return np.where(totals > 0, scale.ends()[places], np.nan)


def knees(cumulated: FloatArray, scale: BucketScale) -> FloatArray:
    """Return, for each row of cumulative weights, the request above which more capacity costs more than it is worth.

    A request costs its amount in multiples of the mean usage; usage above the request costs `_COST_OF_TIME` of the mean
    usage if it lasts all the time. So nothing is reserved for a rare spike, and steady usage is almost always covered.
    The result is NaN for a row without weight.
    """
    totals = cumulated[:, -1:]
    ends = scale.ends()
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (np.diff(cumulated, axis=1, prepend=0.0) @ ends)[:, None] / totals
        costs = ends / means + _COST_OF_TIME * (1.0 - cumulated / totals)
    found = ends[np.argmin(np.nan_to_num(costs, nan=np.inf), axis=1)]
    return np.where(totals[:, 0] > 0, found, np.nan)
