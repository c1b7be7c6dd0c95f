"""Generated usage of containers, from a seed: daily seasons, growth, spikes, leaks, nightly jobs and steady usage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.kinds.resources.histograms import FloatArray

STEP_SECONDS: Final = 300
STEPS_PER_DAY: Final = 288
_MEBIBYTE: Final = 2.0**20


@dataclass(frozen=True, slots=True)
class MadeUsage:
    """Generated usage by container and step."""

    cores: FloatArray
    memory: FloatArray
    """Usage of memory in bytes."""
    shapes: tuple[str, ...]
    """The shape of each container."""


def made_usage(containers: int, days: int, seed: int) -> MadeUsage:
    """Return usage of containers of all shapes, in turn, each with its own size and noise."""
    random = np.random.default_rng(seed)
    names = tuple(_SHAPES)
    shapes = tuple(names[number % len(names)] for number in range(containers))
    pairs = [_SHAPES[shape](random, days * STEPS_PER_DAY) for shape in shapes]
    cores = np.exp(random.normal(-1.6, 1.0, size=(containers, 1)))
    memory = np.exp(random.normal(5.5, 0.9, size=(containers, 1))) * _MEBIBYTE
    return MadeUsage(
        np.maximum(np.array([cpu for cpu, _ in pairs]) * cores, 0.0),
        np.maximum(np.array([held for _, held in pairs]) * memory, _MEBIBYTE),
        shapes,
    )


def _noise(random: np.random.Generator, steps: int, width: float) -> FloatArray:
    """Return factors around 1 that change gradually, as load does."""
    shocks = random.normal(0.0, width, steps)
    kept = 0.8
    found = np.empty(steps)
    value = 0.0
    for step in range(steps):
        value = kept * value + shocks[step] * np.sqrt(1 - kept**2)
        found[step] = value
    return np.exp(found - width**2 / 2)


def _season(random: np.random.Generator, steps: int) -> FloatArray:
    """Return a day's rise and fall, with quieter weekends."""
    day = np.arange(steps) / STEPS_PER_DAY
    depth, phase = random.uniform(0.3, 0.9), random.uniform(0, 1)
    weekend = np.where((np.floor(day + phase) % 7) >= 5, random.uniform(0.6, 1.0), 1.0)
    return np.asarray((1 + depth * np.sin(2 * np.pi * (day + phase))) * weekend)


def _steady(random: np.random.Generator, steps: int) -> tuple[FloatArray, FloatArray]:
    return _noise(random, steps, 0.05), 1 + 0.02 * random.standard_normal(steps)


def _daily(random: np.random.Generator, steps: int) -> tuple[FloatArray, FloatArray]:
    season = _season(random, steps)
    return season * _noise(random, steps, 0.15), 0.8 + 0.2 * season * _noise(random, steps, 0.03)


def _growing(random: np.random.Generator, steps: int) -> tuple[FloatArray, FloatArray]:
    grown = np.exp(np.arange(steps) / STEPS_PER_DAY * random.uniform(0.01, 0.05))
    return _season(random, steps) * grown * _noise(random, steps, 0.1), grown * _noise(random, steps, 0.02)


def _spiky(random: np.random.Generator, steps: int) -> tuple[FloatArray, FloatArray]:
    spikes = np.zeros(steps)
    for at in random.integers(0, steps, size=random.integers(2, 10) * steps // STEPS_PER_DAY):
        spikes[at : at + random.integers(1, 6)] = random.uniform(1, 6)
    return 0.5 * _noise(random, steps, 0.2) + spikes, 1 + 0.1 * spikes * random.uniform(0, 1, steps)


def _leaking(random: np.random.Generator, steps: int) -> tuple[FloatArray, FloatArray]:
    period = random.uniform(1.5, 6.0) * STEPS_PER_DAY
    since = (np.arange(steps) + random.integers(0, steps)) % period / period
    return _season(random, steps) * _noise(random, steps, 0.1), 0.5 + np.asarray(since, dtype=np.float64) * float(
        random.uniform(0.5, 2.0)
    )


def _nightly(random: np.random.Generator, steps: int) -> tuple[FloatArray, FloatArray]:
    """Return the usage of a job of an hour or two each night, which uses hardly anything otherwise."""
    length, begin = random.integers(12, 30), random.integers(0, STEPS_PER_DAY)
    works = ((np.arange(steps) - begin) % STEPS_PER_DAY) < length
    return np.where(works, 2.0, 0.05) * _noise(random, steps, 0.1), np.where(works, 1.5, 0.4) * _noise(
        random, steps, 0.02
    )


_SHAPES: Final[dict[str, Callable[[np.random.Generator, int], tuple[FloatArray, FloatArray]]]] = {
    "steady": _steady,
    "daily": _daily,
    "growing": _growing,
    "spiky": _spiky,
    "leaking": _leaking,
    "nightly": _nightly,
}
