"""Generated loads of services that nobody recorded: deploys, launches, sensors, tiny counts, crowds; each from a seed.

They were written after all rules of the choice had been fixed, to attack it: each has a property that real load has and
that the recorded traces lack. Every generator takes the times of the steps, in days, and random numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.made_shapes import LEVEL, noisy, week

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray

_JOBS: Final = 40
_DROPOUTS: Final = 30
_LAUNCH_DAY: Final = 15.4
_STOPS: Final = ((11.3, 13.6), (20.0, 22.5))
"""Periods, in days, during which a service does not run."""
_CHANGE_DAY: Final = 16
_QUANTUM: Final = 150.0
_EXPORTED_EVERY_STEPS: Final = 3
_SAWTOOTH_HOURS: Final = 7.3
_CROWDS_A_DAY: Final = 1.5


def random_jobs(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a quiet base with jobs of half an hour to six hours that begin at any hour."""
    load = np.full(len(day), 300.0)
    for begin in rng.integers(0, len(day), _JOBS):
        load[begin : begin + rng.integers(6, 72)] += LEVEL * rng.uniform(0.5, 2.0)
    return noisy(load, rng, 0.05)


def slow_leak(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return memory that leaks for a week and falls with the deploy on Wednesday noon, above a small daily cycle."""
    since_deploy = (day - 3.5) % 7
    return noisy(LEVEL * (0.4 + 0.12 * since_deploy + 0.1 * week(day)), rng, 0.01)


def product_launch(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a working week in which load grows to five times its size within an hour and falls over days."""
    since = day - _LAUNCH_DAY
    more = np.where(since > 0, 4 * (1 - np.exp(-np.maximum(since, 0) * 24)) * np.exp(-np.maximum(since, 0) / 3), 0.0)
    return noisy(LEVEL * week(day) * (1 + more), rng, 0.06)


def changed_weekdays(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a week whose days off move from Saturday and Sunday to Thursday and Friday."""
    return noisy(LEVEL * week(day, np.where(day >= _CHANGE_DAY, 2.0, 0.0)), rng, 0.05)


def sensor_dropouts(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a daily cycle that a sensor reads as 0 for minutes and does not read at all for hours."""
    load = noisy(LEVEL * (1 + 0.6 * np.sin(2 * np.pi * (day - 0.3))), rng, 0.05)
    for begin in rng.integers(0, len(day), _DROPOUTS):
        load[begin : begin + rng.integers(1, 6)] = 0.0
    for begin in rng.integers(0, len(day), _DROPOUTS // 3):
        load[begin : begin + rng.integers(12, 120)] = np.nan
    return load


def sawtooth(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a queue that fills for a bit more than seven hours and is emptied at once; no day is like another."""
    return noisy(LEVEL * (0.2 + day * 24 / _SAWTOOTH_HOURS % 1), rng, 0.04)


def flash_crowds(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a daily cycle with crowds of any size (Pareto) that come within minutes and go within an hour."""
    factor = np.ones(len(day))
    for begin in rng.integers(0, len(day), int(_CROWDS_A_DAY * day[-1])):
        steps = np.arange(min(36, len(day) - begin))
        factor[begin : begin + 36] += min(rng.pareto(1.2), 30.0) * np.exp(-steps / 6)
    return noisy(LEVEL * (0.5 + 0.3 * np.sin(2 * np.pi * (day - 0.3))) * factor, rng, 0.08)


def stopped_for_days(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a working week of a service that is stopped twice, for more than two days."""
    load = noisy(LEVEL * week(day), rng, 0.06)
    for begin, end in _STOPS:
        load[(day >= begin) & (day < end)] = 0.0
    return load


def tiny_counts(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return counts of 0 to 3, more of them by day."""
    return np.minimum(3.0, rng.poisson(0.3 + 1.2 * week(day)).astype(np.float64))


def quantised_counter(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a rate in coarse units, of a counter that is exported every third step."""
    load = noisy(LEVEL * week(day), rng, 0.08)
    return np.asarray(np.round(np.repeat(load[::_EXPORTED_EVERY_STEPS], _EXPORTED_EVERY_STEPS) / _QUANTUM) * _QUANTUM)


def build_farm(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a working week with a build farm's bursts: several an hour by day, each of a random length."""
    load = 200 + 200 * week(day)
    for begin in np.flatnonzero(rng.random(len(day)) < 0.06 * week(day)):
        load[begin : begin + rng.geometric(0.3)] += LEVEL * rng.uniform(0.2, 0.6)
    return noisy(load, rng, 0.05)
