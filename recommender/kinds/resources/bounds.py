"""Lower bound, target and upper bound of requests, as Kubernetes' Vertical Pod Autoscaler calculates them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.resources.histograms import DAY_SECONDS, HALF_LIFE_SECONDS, knees, percentiles
from recommender.kinds.resources.resources_settings import MARGIN_RATIO, TARGET_PERCENTILE

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.kinds.resources.histograms import FloatArray, IntArray, UsageHistograms

LOWER_PERCENTILE: Final = 0.5
UPPER_PERCENTILE: Final = 0.95
POD_MINIMUM_CORES: Final = 0.025
POD_MINIMUM_BYTES: Final = 250.0 * 2**20
SHORTEST_HISTORY_SECONDS: Final = 3600.0

_OWN_HALF_LIFE_SECONDS: Final = 4 * DAY_SECONDS
"""The half-life of CPU samples if each container has its own percentile, so that a quiet weekend does not hide the days
before it."""
_SWINGS: Final = 1.5
"""The room above the usual peak of memory, as a multiple of the day-to-day swings."""
_MOST_ROOM_RATIO: Final = 0.5
_RESAMPLES: Final = 100
_RESAMPLED_SHARES: Final = (0.05, 0.95)
FEWEST_DAYS: Final = 3
"""With fewer days, the variation between days is unknown."""
_SEED: Final = 27


@dataclass(frozen=True, slots=True)
class SizeSettings:
    """How requests are derived from usage."""

    percentile: float | None = TARGET_PERCENTILE
    """Share of the weighted samples, 0 to 1, that the target covers; None if each container has its own (`knees`)."""
    margin_ratio: float = MARGIN_RATIO
    has_interval: bool = True
    """Whether the interval of the target is calculated, which takes longer than everything else."""


@dataclass(frozen=True, slots=True)
class RequestBounds:
    """The bounds of each row, in cores or bytes; NaN where there are no samples."""

    lower: FloatArray
    target: FloatArray
    upper: FloatArray
    low: FloatArray
    """Lower end of the interval that contains the target with a confidence of 90%; NaN with fewer than `FEWEST_DAYS`
    days."""
    high: FloatArray


def confidences(lifespans_seconds: FloatArray, samples: FloatArray, step_seconds: float) -> FloatArray:
    """Return how much is known about each row: 1 for a day with a sample each minute, and more for more days.

    A sample of a longer step stands for as many minutes as it covers.
    """
    minutes = samples * (step_seconds / 60.0)
    return np.minimum(lifespans_seconds / DAY_SECONDS, minutes / 1440.0)


def bounds_of(
    histograms: UsageHistograms,
    confidence: FloatArray,
    settings: SizeSettings,
    minimum: FloatArray,
    swings: FloatArray | None = None,
) -> RequestBounds:
    """Return the bounds of each row; `minimum` is, by row, the least value of lower bound, target and upper bound.

    `swings` are given for memory without a percentile: the variation of a row's peaks from day to day, as a ratio. The
    target is then the largest peak, or the usual peak with room in proportion to the swings, since a container that
    exceeds its memory may be killed.
    """
    scale, margin = histograms.scale, 1.0 + settings.margin_ratio
    has_knees = settings.percentile is None and swings is None
    target_weights = histograms.day_weights(_OWN_HALF_LIFE_SECONDS if has_knees else HALF_LIFE_SECONDS)

    def raw_target(cumulated: FloatArray) -> FloatArray:
        if settings.percentile is not None:
            return percentiles(cumulated, scale, settings.percentile)
        if swings is None:
            return knees(cumulated, scale)
        usual = percentiles(cumulated, scale, TARGET_PERCENTILE)
        room = 1.0 + np.minimum(_SWINGS * swings, _MOST_ROOM_RATIO)
        return np.asarray(np.maximum(percentiles(cumulated, scale, 1.0), usual * room))

    cumulated = histograms.cumulate(histograms.day_weights())
    target = raw_target(histograms.cumulate(target_weights) if has_knees else cumulated) * margin
    lower = np.minimum(percentiles(cumulated, scale, LOWER_PERCENTILE) * margin, target)
    upper = np.maximum(percentiles(cumulated, scale, UPPER_PERCENTILE) * margin, target)
    with np.errstate(divide="ignore"):
        lower = lower * np.power(1.0 + 0.001 / confidence, -2.0)
        upper = upper * (1.0 + 1.0 / confidence)
    unknown = np.full_like(target, np.nan)
    low, high = (
        (end * margin for end in _interval(histograms, target_weights, raw_target))
        if settings.has_interval
        else (unknown, unknown)
    )
    return RequestBounds(
        np.maximum(lower, minimum),
        np.maximum(target, minimum),
        np.maximum(upper, minimum),
        np.minimum(np.maximum(low, minimum), np.maximum(target, minimum)),
        np.maximum(np.maximum(high, minimum), np.maximum(target, minimum)),
    )


def _interval(
    histograms: UsageHistograms, weights: FloatArray, raw_target: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return both ends of the target's interval, from the targets of days that are resampled with replacement.

    This is the bootstrap with days as blocks, since samples within a day depend on each other. Days without samples
    count as unknown.
    """
    days, rows = histograms.weights.shape[:2]
    known = histograms.days_with_samples >= FEWEST_DAYS
    if not known.any():
        return np.full(rows, np.nan), np.full(rows, np.nan)
    random = np.random.default_rng(_SEED)
    targets = np.empty((_RESAMPLES, rows), dtype=np.float32)
    for number in range(_RESAMPLES):
        drawn = np.bincount(random.integers(days, size=days), weights, minlength=days).astype(np.float64)
        targets[number] = raw_target(histograms.cumulate(drawn))
    # A draw may contain none of a row's days: then the row has fewer targets.
    ends = np.full((2, rows), np.nan)
    ends[:, known] = np.nanquantile(targets[:, known], _RESAMPLED_SHARES, axis=0)
    return ends[0], ends[1]


def minimum_of(pod_minimum: float, containers: IntArray) -> FloatArray:
    """Return the least request of a container: the pod's minimum, divided among its containers."""
    return pod_minimum / np.maximum(containers, 1)
