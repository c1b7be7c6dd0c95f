"""Statistics of windows: average, deviation, 95th percentile and maximum, and how much of a window has samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.loads import AVG, MAX, P95, SAMPLE_WINDOWS_SECONDS, STATS, STD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats

MIN_COVERAGE: Final = 0.8
"""Share of a window's samples below which the window is not served."""
FALLBACKS: Final = ((0, 1, 2), (1, 2, 0), (2, 1, 0))
"""For each window, the windows that its numbers may come from, in this order: itself, shorter ones, longer ones."""
PERCENTILE: Final = 0.95
# A scrape interval that is learned from timestamps is a little longer or shorter than the configured one.
_INTERVAL_TOLERANCE_STEPS: Final = 0.1


def window_columns(step_seconds: int) -> tuple[int, ...]:
    """Return how many columns each window of samples has."""
    return tuple(seconds // step_seconds for seconds in SAMPLE_WINDOWS_SECONDS)


def last_columns(values: Floats, columns: int) -> Floats:
    """Return the newest columns."""
    return values[:, max(values.shape[1] - columns, 0) :]


def rank(ordered: Floats, counts: NDArray[np.int64], quantile: float) -> Floats:
    """Return the quantile of each row as Prometheus's `quantile_over_time` interpolates it; NaN without samples.

    `ordered` has each row's samples in ascending order and NaN after them, as `np.sort` leaves them.
    """
    if not ordered.shape[1]:
        return np.full(len(ordered), np.nan)
    at = quantile * (counts - 1)
    lower = np.maximum(np.floor(at), 0).astype(np.intp)
    upper = np.clip(lower + 1, 0, np.maximum(counts - 1, 0))
    weight = at - np.floor(at)
    rows = np.arange(len(ordered))
    # Without samples the first column is NaN, which is the answer.
    found: Floats = ordered[rows, lower] * (1 - weight) + ordered[rows, upper] * weight
    return found


def statistics_of(values: Floats) -> Floats:
    """Return average, population standard deviation, 95th percentile and maximum of each row's samples.

    The shape is (stats, nodes); NaN where a row has no sample. Samples are finite or NaN.
    """
    found = np.full((len(STATS), len(values)), np.nan)
    if not values.shape[1]:
        return found
    present = ~np.isnan(values)
    counts = present.sum(axis=1)
    divisor = np.where(counts > 0, counts, np.nan)
    found[AVG] = np.where(present, values, 0.0).sum(axis=1) / divisor
    deviations = np.where(present, values - found[AVG][:, None], 0.0)
    found[STD] = np.sqrt(np.einsum("ij,ij->i", deviations, deviations) / divisor)
    ordered = np.sort(values, axis=1)
    found[P95] = rank(ordered, counts, PERCENTILE)
    found[MAX] = ordered[np.arange(len(ordered)), np.maximum(counts - 1, 0)]
    return found


def window_statistics(values: Floats, step_seconds: int) -> Floats:
    """Return the statistics of each window that ends with the last column, of shape (windows, stats, nodes)."""
    return np.stack([statistics_of(last_columns(values, columns)) for columns in window_columns(step_seconds)])


def columns_per_scrape(scrape_seconds: Floats, step_seconds: int) -> NDArray[np.int64]:
    """Return for how many steps a scraped sample is in force: 1 unless scrapes are farther apart than steps."""
    ratio = np.fmax(scrape_seconds, float(step_seconds)) / step_seconds
    return np.ceil(np.fmin(ratio, 1e6) - _INTERVAL_TOLERANCE_STEPS).astype(np.int64)


def window_coverage(values: Floats, scrape_seconds: Floats, step_seconds: int) -> Floats:
    """Return the share (0..1) of each window's expected samples that are present, of shape (windows, nodes).

    Samples are expected once per scrape interval. If that is longer than a step, an answer either repeats a sample at
    the following steps or has none there; both count as one sample, which is in force until the next is due.
    """
    present = ~np.isnan(values)
    covered = present.copy()
    per_scrape = columns_per_scrape(scrape_seconds, step_seconds)
    for columns in np.unique(per_scrape[per_scrape > 1]).tolist():
        rows = np.flatnonzero(per_scrape == columns)
        seen = np.cumsum(present[rows], axis=1)
        reach = min(columns, values.shape[1])
        before = np.pad(seen, ((0, 0), (reach, 0)))[:, : values.shape[1]]
        covered[rows] = seen > before
    shares = np.zeros((len(SAMPLE_WINDOWS_SECONDS), len(values)))
    for window, columns in enumerate(window_columns(step_seconds)):
        if columns:
            shares[window] = covered[:, -columns:].sum(axis=1) / columns
    return shares


def windows_served(usable: NDArray[np.bool_]) -> NDArray[np.int8]:
    """Return, for each window, the window that its numbers are taken from (-1 for none), given the usable ones.

    Both are of shape (windows, nodes).
    """
    found = np.full(usable.shape, -1, dtype=np.int8)
    for window, order in enumerate(FALLBACKS):
        for other in reversed(order):
            found[window, usable[other]] = other
    return found


def served_statistics(stats: Floats, taken_from: NDArray[np.int8]) -> Floats:
    """Return, for each window, the statistics of the window that its numbers are taken from; NaN for none."""
    picked = np.take_along_axis(stats, np.maximum(taken_from, 0)[:, None, :].astype(np.intp), axis=0)
    return np.where(taken_from[:, None, :] >= 0, picked, np.nan)
