"""Generated loads whose past misleads a forecast: they jump, grow in steps, switch their cycle, or have just begun.

They show where a proof comes late, and where a change of the cost is dear, which the other generated loads hardly do.
Every generator takes the times of the steps, in days, and random numbers. The first day is a Sunday.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.made_shapes import LEVEL, noisy, office, week

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray

_MONDAY_GROWTH: Final = 1.35
_GROWTH_STEPS: Final = 6
_CALM_DAYS: Final = 3
"""The level of a load that grows in steps is constant for at least this long at the beginning."""
_SHORTEST_STRETCH_DAYS: Final = 2
_LONGEST_STRETCH_DAYS: Final = 5
_JOB_HOURS: Final = (2.0, 9.0, 17.0)
_BURSTS_A_DAY: Final = 4


def monday_jumps(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a daily cycle that grows by 35% at the beginning of each Monday."""
    return noisy(LEVEL * _cycle(day) * _MONDAY_GROWTH ** np.floor((day + 6) / 7), rng, 0.05)


def growing_steps(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a daily cycle that grows at six random moments, by 20 to 80% each, and keeps each level."""
    level = np.ones(len(day))
    for begin in rng.uniform(_CALM_DAYS, day[-1], _GROWTH_STEPS):
        level[day >= begin] *= np.exp(rng.uniform(np.log(1.2), np.log(1.8)))
    return noisy(LEVEL * _cycle(day) * level, rng, 0.05)


def switched_cycle(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return an office's cycle above a constant load that stops and resumes after two to five days."""
    is_on = np.zeros(len(day))
    begin, runs = 0.0, bool(rng.integers(2))
    while begin < day[-1]:
        end = begin + rng.uniform(_SHORTEST_STRETCH_DAYS, _LONGEST_STRETCH_DAYS)
        is_on[(day >= begin) & (day < end)] = runs
        begin, runs = end, not runs
    return noisy(LEVEL * (0.5 + is_on * office(day)), rng, 0.06)


def wandering_cycle(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a daily cycle times a random walk that is drawn back to its level within a day."""
    wandered, walk = 0.0, np.empty(len(day))
    kept = np.exp(-np.diff(day, prepend=0.0))
    for place, step in enumerate(rng.normal(0.0, 0.03, len(day))):
        wandered = kept[place] * wandered + step
        walk[place] = wandered
    return np.asarray(LEVEL * np.exp(walk) * _cycle(day))


def working_week(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return working days and a quiet weekend."""
    return noisy(LEVEL * week(day), rng, 0.05)


def moving_jobs(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return three jobs a day, each of an hour and several times the other load, up to 40 minutes early or late."""
    load = np.full(len(day), 300.0)
    for since in range(int(day[-1]) + 1):
        for hour in _JOB_HOURS:
            begin = since + (hour + rng.uniform(-0.7, 0.7)) / 24
            load[(day >= begin) & (day < begin + 1 / 24)] += LEVEL
    return noisy(load, rng, 0.05)


def random_bursts(day: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a working week with four bursts a day at random moments, each of ten minutes to an hour."""
    load = 300 + 300 * week(day)
    for begin in rng.uniform(0, day[-1], int(_BURSTS_A_DAY * day[-1])):
        load[(day >= begin) & (day < begin + rng.uniform(1 / 144, 1 / 24))] += LEVEL * rng.uniform(0.5, 1.5)
    return noisy(load, rng, 0.05)


def _cycle(day: FloatArray) -> FloatArray:
    return np.asarray(1 + 0.6 * np.sin(2 * np.pi * (day - 0.3)))
