"""The requests that other recommenders make of recorded usage, written from their documentation alone.

The Vertical Pod Autoscaler: histograms whose buckets grow by 5 %, in which a sample of a day ago weighs half; 90th
percentile and 15 %; of memory, the largest value of each day counts (kubernetes/autoscaler, vertical-pod-autoscaler).
KRR: its strategy `simple`: the 95th percentile of CPU, and the largest memory with 15 % more, of 14 days
(robusta-dev/krr). Least requests are left out of both, as of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.sized_workloads import STEPS_PER_DAY

if TYPE_CHECKING:
    from recommender.kinds.resources.histograms import FloatArray

VPA_DAYS: Final = 8
KRR_DAYS: Final = 14
_BUCKETS: Final = 176
_GROWTH: Final = 1.05
_FIRST_CORES: Final = 0.01
_FIRST_BYTES: Final = 1e7
_MARGIN: Final = 1.15


def vpa_cores(cores: FloatArray) -> FloatArray:
    """Return the request of each row; the last sample is the newest."""
    newest = cores[:, -VPA_DAYS * STEPS_PER_DAY :]
    ages_days = np.arange(newest.shape[1])[::-1] / STEPS_PER_DAY
    return _percentiles(newest, np.exp2(-ages_days), _FIRST_CORES)


def vpa_bytes(memory: FloatArray) -> FloatArray:
    """Return the request of each row; the last sample is the newest."""
    days = min(VPA_DAYS, memory.shape[1] // STEPS_PER_DAY)
    peaks = memory[:, -days * STEPS_PER_DAY :].reshape(-1, days, STEPS_PER_DAY).max(axis=2)
    return _percentiles(peaks, np.exp2(-np.arange(days)[::-1]), _FIRST_BYTES)


def _percentiles(values: FloatArray, weights: FloatArray, first: float) -> FloatArray:
    """Return the 90th percentile of each row, as the end of its bucket, and 15 %."""
    ends = first * (_GROWTH ** np.arange(1, _BUCKETS + 1) - 1) / (_GROWTH - 1)
    order = np.argsort(values, axis=1)
    covered = np.cumsum(weights[order], axis=1)
    place = np.argmax(covered >= 0.9 * covered[:, -1:], axis=1)
    found = values[np.arange(len(values)), order[np.arange(len(values)), place]]
    return np.asarray(ends[np.searchsorted(ends, found, side="right")] * _MARGIN)


def krr_cores(cores: FloatArray) -> FloatArray:
    """Return the request of each row; the last sample is the newest."""
    return np.asarray(np.percentile(cores[:, -KRR_DAYS * STEPS_PER_DAY :], 95, axis=1))


def krr_bytes(memory: FloatArray) -> FloatArray:
    """Return the request of each row; the last sample is the newest."""
    return np.asarray(memory[:, -KRR_DAYS * STEPS_PER_DAY :].max(axis=1) * _MARGIN)
