"""Seeded load for tests of models and of their choice."""

from __future__ import annotations

import numpy as np

from recommender.kinds.predictive.history import LoadHistory

STEP_SECONDS = 600.0
DAY_STEPS = 144


def bursts_every_day(days: int, seed: int = 1, size: float = 1000.0) -> LoadHistory:
    """Return a daily cycle with steep rises at fixed times, which yesterday's load shows and the current hides."""
    rng = np.random.default_rng(seed)
    of_day = np.arange(days * DAY_STEPS) % DAY_STEPS
    shape = 0.3 + 0.2 * np.sin(2 * np.pi * (of_day - 36) / DAY_STEPS)
    shape = shape + 0.5 * np.isin(of_day, (50, 51, 52, 74, 75, 104, 105, 106, 107))
    noise = rng.lognormal(0.0, 0.05, len(of_day))
    return LoadHistory(1_700_006_400.0, STEP_SECONDS, (size * shape * noise)[np.newaxis, :])


def random_walk(days: int, seed: int = 2) -> LoadHistory:
    """Return a load whose next change cannot be predicted."""
    rng = np.random.default_rng(seed)
    level = np.cumsum(rng.normal(0.0, 0.03, days * DAY_STEPS))
    return LoadHistory(1_700_006_400.0, STEP_SECONDS, (500 * np.exp(level - level.mean()))[np.newaxis, :])


def with_values(history: LoadHistory, values: np.ndarray) -> LoadHistory:
    """Return the same grid with other values."""
    return LoadHistory(history.start_seconds, history.step_seconds, values)
