"""From desired replicas to replicas that serve.

Source: the definition of the backtest in docs/predictive.md. The largest desired size of the down window is asked for;
a pod that is asked for in step t serves from t + start-up + one step; a pod that is dropped is gone at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from recommender.predictive.arrays import FloatArray


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
        """Return how many decisions the down window holds, the present one included."""
        return max(1, int(self.down_window_seconds / self.step_seconds + 1e-9))


@dataclass(frozen=True, slots=True)
class Fleet:
    """A simulated fleet, step by step; arrays of shape (steps,)."""

    asked: FloatArray
    """Replicas that are paid for: those that serve and those that start."""
    serving: FloatArray


def needed_replicas(load: FloatArray, load_per_replica: float) -> FloatArray:
    """Return the replicas that the load needs, at least one; NaN where the load is unknown."""
    return np.maximum(1.0, np.ceil(load / load_per_replica - 1e-9))


def desired_replicas(capacity: FloatArray, load_per_replica: float) -> FloatArray:
    """Return the replicas for a capacity in units of load; a step without one keeps the last, the first ones 0."""
    desired = np.ceil(capacity / load_per_replica - 1e-9)
    known = np.where(np.isnan(desired), -1, np.arange(len(desired)))
    last = np.maximum.accumulate(known)
    return np.where(last >= 0, desired[np.maximum(last, 0)], 0.0)


def simulate(desired: FloatArray, settings: FleetSettings) -> Fleet:
    """Return the fleet of a policy from its desired replicas, shape (steps,)."""
    bounded = np.clip(desired, settings.min_replicas, settings.max_replicas or np.inf)
    asked = _sliding(bounded, settings.down_window_steps, largest=True)
    return Fleet(asked, _sliding(asked, settings.lag_steps + 1, largest=False))


def _sliding(values: FloatArray, steps: int, *, largest: bool) -> FloatArray:
    """Return the largest or smallest of the last so many values at each step; the first one counts before the start."""
    padded = np.concatenate([np.full(steps - 1, values[0]), values])
    windows = sliding_window_view(padded, steps)
    return np.asarray(windows.max(axis=1) if largest else windows.min(axis=1))
