"""A load to try backtests with, generated from a seed, not recorded. It has a season, growth, noise and a spike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.backtest.recorded.trace_file import RecordedLoad
from recommender.kinds.predictive.history import DAY_SECONDS

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray

SOURCE: Final = "a generated load (--example)"
_BEGIN: Final = 1_772_409_600.0
"""2026-03-02T00:00:00Z, a Monday."""
_DAYS: Final = 14
_STEP_SECONDS: Final = 300.0
_SEED: Final = 1
_PEAK: Final = 2000.0
"""Requests per second in the evening of the first working day."""
_NIGHT_SHARE: Final = 0.15
_WEEKEND_SHARE: Final = 0.7
_GROWTH_A_DAY: Final = 0.015
_NOISE_RATIO: Final = 0.04
_SPIKE_AT_DAY: Final = 10 + 13.5 / 24
_SPIKE_RATIO: Final = 1.5
_SPIKE_RISE_DAYS: Final = 10 / 1440
_SPIKE_FALL_DAYS: Final = 40 / 1440


def example_load() -> RecordedLoad:
    """Return the requests per second of an invented shop over two weeks; each call returns the same values."""
    days = np.arange(_DAYS * DAY_SECONDS / _STEP_SECONDS) * _STEP_SECONDS / DAY_SECONDS
    noise = np.random.default_rng(_SEED).normal(0.0, _NOISE_RATIO, len(days))
    growth = (1 + _GROWTH_A_DAY) ** days
    load = _PEAK * _season(days) * growth * (1 + _spike(days)) * np.exp(noise)
    return RecordedLoad(SOURCE, _BEGIN + days * DAY_SECONDS, np.round(load, 1))


def _season(days: FloatArray) -> FloatArray:
    """Return the share of the peak by the time of day and of the week: busy from 8 to 22, busiest at 19, UTC."""
    hours = days % 1 * 24
    awake = 1 / (1 + np.exp(8 - hours)) / (1 + np.exp(1.5 * (hours - 22)))
    evening = 0.6 + 0.4 * np.exp(-(((hours - 19) / 2.5) ** 2))
    weekend = np.where(days % 7 >= 5, _WEEKEND_SHARE, 1.0)
    return np.asarray((_NIGHT_SHARE + (1 - _NIGHT_SHARE) * awake * evening) * weekend)


def _spike(days: FloatArray) -> FloatArray:
    """Return the load that a single event adds, as a ratio: steep at first, then fading."""
    since = days - _SPIKE_AT_DAY
    rising = np.clip(since / _SPIKE_RISE_DAYS, 0.0, 1.0)
    return np.asarray(_SPIKE_RATIO * rising * np.exp(-np.maximum(since, 0.0) / _SPIKE_FALL_DAYS))
