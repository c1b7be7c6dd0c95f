"""The scrape interval of each exporter, learned from its series. Pure, vectorised.

`answer_rows` combines two signs. The times of the newest samples on neighbouring steps differ by the interval,
exactly, if scrapes are not closer than the steps; the median difference is taken, so a failed scrape does no harm. The
number of samples in a window also shows shorter intervals, but it gives too long an interval for a target that is new
or has gaps. So the shorter of the two intervals counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from adapter.nodes.model.arrays import Floats

COUNT_WINDOW_SECONDS: Final = 600
"""Window in which samples are counted."""
_USUAL_SECONDS = np.array([1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 300], dtype=np.float64)


def from_counts(counts: Floats) -> Floats:
    """Return the usual scrape interval that is nearest, by ratio, to the measured one; NaN without samples."""
    intervals = COUNT_WINDOW_SECONDS / np.where(counts >= 1, counts, np.nan)
    nearest = np.abs(np.log(_USUAL_SECONDS[:, None] / intervals[None, :]))
    usual = _USUAL_SECONDS[np.argmin(np.where(np.isnan(nearest), np.inf, nearest), axis=0)]
    return np.where(np.isnan(intervals), np.nan, usual)


def from_times(newest: Floats) -> Floats:
    """Return the median difference between the times of neighbouring samples of each row; NaN for fewer than two."""
    if newest.shape[1] < 2:
        return np.full(len(newest), np.nan)
    differences = np.diff(newest, axis=1)
    return row_medians(np.where(differences > 0, differences, np.nan))


def row_medians(values: Floats) -> Floats:
    """Return the (lower) median of the numbers of each row; NaN for a row without any."""
    if not values.shape[1]:
        return np.full(len(values), np.nan)
    known = np.count_nonzero(~np.isnan(values), axis=1)
    middle = np.maximum(known - 1, 0) // 2
    # NaN is sorted to the end.
    found: Floats = np.sort(values, axis=1)[np.arange(len(values)), middle]
    return found


def longest_interval(intervals: Floats) -> float:
    """Return the longest interval; NaN if none is known."""
    return float(np.fmax.reduce(intervals, initial=np.nan))
