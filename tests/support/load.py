"""Seeded load for tests of forecasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.forecast import ForecastTask
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray

TASK = ForecastTask(lead_seconds=600, window_seconds=600)
MONDAY_SECONDS = 4 * DAY_SECONDS
"""Midnight of 1970-01-05, UTC."""


def daily_load(step_seconds: float, days: float, noise: float = 0.0, level: float = 100.0) -> FloatArray:
    """Return a load with one peak a day and noise relative to its level; shape (steps,)."""
    steps = int(days * DAY_SECONDS / step_seconds)
    phase = np.arange(steps) * step_seconds / DAY_SECONDS * 2 * np.pi
    shape = level * (1 - 0.6 * np.cos(phase) + 0.2 * np.sin(2 * phase))
    noisy: FloatArray = shape * (1 + noise * np.random.default_rng(7).standard_normal(steps))
    return np.maximum(noisy, 0.0)


def history_of(values: object, step_seconds: float = 300.0) -> LoadHistory:
    """Return values of shape (steps,) or (series, steps) as a load that begins on a Monday."""
    return LoadHistory(MONDAY_SECONDS, step_seconds, np.atleast_2d(np.asarray(values, dtype=np.float64)))
