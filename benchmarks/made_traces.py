"""Generated loads that are hard for forecasts: each comes from a seed, so that every run uses the same ones.

Recorded load holds few of the cases in which a forecast does harm. Each of these holds one: no cycle at all, a cycle
that changes, silence, single spikes. No parameter was chosen by its figures for them alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks import changing_loads, made_services
from benchmarks.made_shapes import LEVEL, noisy, office, week
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory, of_one_series

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.kinds.predictive.arrays import FloatArray

BEGIN: Final = 1_772_323_200.0
"""The beginning: Sunday, 1 March 2026, 00:00 UTC. Clocks in Berlin are set forward four weeks later."""
STEP_SECONDS: Final = 300.0
DAYS: Final = 28
_HOLIDAYS: Final = (9, 16, 17, 24)


@dataclass(frozen=True, slots=True)
class MadeTrace:
    """A generated load and its name."""

    name: str
    make: Callable[[FloatArray, np.random.Generator], FloatArray]
    """Returns the load, given the times of the steps, in days since the beginning, and random numbers."""
    days: int = DAYS
    step_seconds: float = STEP_SECONDS

    def read(self, seed: int = 0) -> LoadHistory:
        """Return the load for a seed."""
        days = np.arange(self.days * DAY_SECONDS / self.step_seconds) * self.step_seconds / DAY_SECONDS
        rng = np.random.default_rng([seed, *self.name.encode()])
        return of_one_series(BEGIN, self.step_seconds, np.maximum(0.0, self.make(days, rng)))


def _random_walk(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    steps = np.cumsum(rng.normal(0.0, 0.03, len(day)))
    return LEVEL * np.exp(np.clip(steps - 0.5 * np.linspace(0, steps[-1], len(steps)), -3, 3))


def _slow_walk(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    found, level = np.empty(len(day)), 0.0
    for place, step in enumerate(rng.normal(0.0, 0.05, len(day))):
        level = 0.99 * level + step
        found[place] = level
    return LEVEL * np.exp(found)


def _noise(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    return LEVEL * rng.lognormal(0.0, 0.4, len(day))


def _small_counts(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    return rng.poisson(4 + 12 * week(day)).astype(np.float64)


def _silent_nights(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    hour, load = day % 1 * 24, noisy(LEVEL * week(day), rng, 0.08)
    return np.where((hour >= 7) & (hour < 21), load, 0.0)


def _spikes(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    load = noisy(LEVEL * week(day), rng, 0.05)
    for at in rng.integers(0, len(day) - 12, 5):
        load[at : at + 6] *= 20.0
    return load


def _summer_time(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    # On the third Sunday, so that a week follows: all of the day comes an hour earlier in UTC.
    return noisy(LEVEL * week(day + np.where(day >= 14, 1 / 24, 0.0)), rng, 0.05)


def _holidays(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    off = np.isin(np.floor(day), _HOLIDAYS)
    return noisy(LEVEL * np.where(off, 0.15 + 0.2 * office(day), week(day)), rng, 0.05)


def _drifting_period(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    hours = np.linspace(24.0, 20.0, len(day))
    cycles = np.cumsum(24.0 / hours) * STEP_SECONDS / DAY_SECONDS
    return noisy(LEVEL * (0.2 + office(cycles)), rng, 0.05)


def _misconfigured_cpu(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a group's CPU that oscillates between its limits, and stays high for two days before somebody notices."""
    phase = np.cumsum(rng.lognormal(0.0, 0.3, len(day))) / 40 % 1
    load = 35 + 25 * phase + rng.normal(0, 3, len(day))
    return np.where((day > 19) & (day < 21), 90 + rng.normal(0, 2, len(day)), load)


def _growth(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    return noisy(LEVEL * (1 + 0.08 * day) * week(day), rng, 0.04)


def _batch_jobs(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    hour = day % 1 * 24
    job = ((hour % 6) < 0.5) * 3.0
    return noisy(np.asarray(LEVEL * (0.5 + job), dtype=np.float64), rng, 0.05)


MADE: Final = (
    MadeTrace("random-walk", _random_walk),
    MadeTrace("slow-walk", _slow_walk),
    MadeTrace("noise", _noise),
    MadeTrace("small-counts", _small_counts),
    MadeTrace("silent-nights", _silent_nights),
    MadeTrace("spikes", _spikes),
    MadeTrace("summer-time", _summer_time),
    MadeTrace("holidays", _holidays),
    MadeTrace("drifting-period", _drifting_period),
    MadeTrace("misconfigured-cpu", _misconfigured_cpu),
    MadeTrace("growth", _growth),
    MadeTrace("batch-jobs", _batch_jobs),
    MadeTrace("random-jobs", made_services.random_jobs),
    MadeTrace("slow-leak", made_services.slow_leak),
    MadeTrace("product-launch", made_services.product_launch),
    MadeTrace("changed-weekdays", made_services.changed_weekdays),
    MadeTrace("sensor-dropouts", made_services.sensor_dropouts),
    MadeTrace("sawtooth", made_services.sawtooth),
    MadeTrace("flash-crowds", made_services.flash_crowds),
    MadeTrace("stopped-for-days", made_services.stopped_for_days),
    MadeTrace("tiny-counts", made_services.tiny_counts),
    MadeTrace("quantised-counter", made_services.quantised_counter),
    MadeTrace("build-farm", made_services.build_farm),
)

_LONG_STEP_SECONDS: Final = 600.0

CHANGING: Final = (
    MadeTrace("monday-jumps", changing_loads.monday_jumps, step_seconds=_LONG_STEP_SECONDS),
    MadeTrace("growing-steps", changing_loads.growing_steps, 56, _LONG_STEP_SECONDS),
    MadeTrace("switched-cycle", changing_loads.switched_cycle, step_seconds=_LONG_STEP_SECONDS),
    MadeTrace("wandering-cycle", changing_loads.wandering_cycle, step_seconds=_LONG_STEP_SECONDS),
    MadeTrace("two-weeks-of-jumps", changing_loads.monday_jumps, 14, _LONG_STEP_SECONDS),
    MadeTrace("five-days", changing_loads.working_week, 5),
    MadeTrace("five-days-of-jobs", changing_loads.moving_jobs, 5),
    MadeTrace("eight-days-of-jobs", changing_loads.moving_jobs, 8),
    MadeTrace("eight-days-of-bursts", changing_loads.random_bursts, 8),
    MadeTrace("twelve-days-of-bursts", changing_loads.random_bursts, 12),
)
"""Loads whose past misleads: what grows or changes its cycle, and histories of less than two weeks."""
