"""Turns desired replicas into serving replicas.

Source: the definition of the backtest in docs/predictive.md. The largest desired size of the down window is requested;
a pod that is requested in step t serves from t + start-up + one step; a removed pod disappears at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from recommender.kinds.predictive.policy.arithmetic import MOST_REPLICAS

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.kinds.predictive.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """How the simulated fleet behaves; the same for every policy."""

    step_seconds: float
    startup_seconds: float
    load_per_replica: float
    min_replicas: int = 2
    max_replicas: int | None = None
    down_window_seconds: float = 300.0

    @property
    def lag_steps(self) -> int:
        """Return how many steps after the decision a pod begins to serve."""
        return int(np.ceil(self.startup_seconds / self.step_seconds - 1e-9)) + 1

    @property
    def down_window_steps(self) -> int:
        """Return how many decisions the down window holds, including the current one."""
        return max(1, int(self.down_window_seconds / self.step_seconds + 1e-9))


@dataclass(frozen=True, slots=True)
class Fleet:
    """A simulated fleet, step by step; arrays of shape (…, steps), like the desired replicas."""

    asked: FloatArray
    """Replicas that are paid for, both serving and starting."""
    serving: FloatArray
    changes: FloatArray
    """How many times the size changed in each step."""


Ask: TypeAlias = "Callable[[FloatArray, FleetSettings], FloatArray]"
"""A function from bounded desired replicas to requested replicas; both have the shape (steps,)."""


def needed_replicas(load: FloatArray, load_per_replica: float) -> FloatArray:
    """Return the replicas that the load needs, at least one; NaN where the load is unknown."""
    return np.maximum(1.0, np.ceil(load / load_per_replica - 1e-9))


def desired_replicas(capacity: FloatArray, load_per_replica: float) -> FloatArray:
    """Return the replicas for a capacity in units of load, at most the maximum of `spec.replicas`; shape (…, steps).

    A step without a capacity keeps the replicas of the step before; before the first capacity, they are 0.
    """
    desired = np.minimum(np.ceil(capacity / load_per_replica - 1e-9), MOST_REPLICAS)
    unknown = np.isnan(desired)
    if not unknown.any():
        return np.asarray(desired)
    known = np.where(unknown, -1, np.arange(desired.shape[-1]))
    last = np.maximum.accumulate(known, axis=-1)
    return np.where(last >= 0, np.take_along_axis(desired, np.maximum(last, 0), axis=-1), 0.0)


def largest_of_window(bounded: FloatArray, settings: FleetSettings) -> FloatArray:
    """Return the largest desired replicas of the down window at each step: the default limit on lowering capacity."""
    return sliding_maximum(bounded, settings.down_window_steps)


def simulate(desired: FloatArray, settings: FleetSettings, ask: Ask = largest_of_window) -> Fleet:
    """Return a policy's fleet from its desired replicas, shape (steps,), or the fleets of many with more dimensions.

    `ask` replaces the default rule for lowering if the configuration has `scaleDown` or `connections`.
    """
    asked = ask(bounded_replicas(desired, settings), settings)
    return Fleet(asked, -sliding_maximum(-asked, settings.lag_steps + 1), changed_steps(asked))


def bounded_replicas(desired: FloatArray, settings: FleetSettings) -> FloatArray:
    """Return the replicas within the bounds of the fleet."""
    return np.asarray(np.clip(desired, settings.min_replicas, settings.max_replicas or np.inf))


def changed_steps(asked: FloatArray) -> FloatArray:
    """Return 1 for each step whose requested size differs from that of the previous one, and 0 for the others."""
    return np.asarray(np.diff(asked, axis=-1, prepend=asked[..., :1]) != 0, dtype=np.float64)


def sliding_maximum(values: FloatArray, steps: int) -> FloatArray:
    """Return the largest of the last `steps` values at each step; before the start, the first value counts.

    Steps are the last dimension. The window is doubled until it has its full length, so that a window of hours in steps
    of a second takes only a few passes.
    """
    found, covered = values, 1
    while covered < steps:
        shift = min(covered, steps - covered)
        wider = np.maximum(found, values[..., :1])
        np.maximum(found[..., shift:], found[..., :-shift], out=wider[..., shift:])
        found, covered = np.asarray(wider, dtype=np.float64), covered + shift
    return found
