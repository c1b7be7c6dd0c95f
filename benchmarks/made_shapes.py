"""Shapes that generated loads are composed of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray

LEVEL: Final = 1000.0


def office(day: FloatArray) -> FloatArray:
    """Return a working day's shape from 0 to 1 with a steep morning; `day` is the time in days."""
    hour = day % 1 * 24
    rise, fall = 1 / (1 + np.exp(-(hour - 8) * 2.5)), 1 / (1 + np.exp((hour - 18) * 1.2))
    return np.asarray(rise * fall)


def noisy(load: FloatArray, rng: np.random.Generator, share: float) -> FloatArray:
    """Return the load times lognormal noise; `share` is the standard deviation of its logarithm."""
    return np.asarray(load * np.exp(rng.normal(0.0, share, len(load))))


def week(day: FloatArray, shift: FloatArray | float = 0.0) -> FloatArray:
    """Return working days and quiet weekends; the first day is a Sunday. `shift` is in days."""
    weekday = np.floor(day + shift) % 7
    is_weekend = (weekday == 0) | (weekday == 6)
    return np.asarray(0.15 + office(day + shift) * np.where(is_weekend, 0.35, 1.0))
