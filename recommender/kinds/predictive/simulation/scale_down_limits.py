"""The effect of `scaleDown` and `connections` in the simulation, on models and on plain headroom alike.

The rules are those that `recommender/kinds/predictive/policy` applies step by step, here for a whole trace at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.policy.decay import kept_ratio
from recommender.kinds.predictive.policy.memory import ReconnectMemory
from recommender.kinds.predictive.policy.reconnect import after_observed_load
from recommender.kinds.predictive.policy.requested_sizes import reserve_ratio
from recommender.kinds.predictive.simulation.serving import simulate

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray
    from recommender.kinds.predictive.predictive_settings import Connections, PredictiveSettings
    from recommender.kinds.predictive.simulation.serving import FleetSettings

_NOTHING_KEPT: Final = -50.0
"""The logarithm of a share so small that it never rounds up to a replica."""
_SLACK: Final = 1e-7
"""The rounding error of the logarithms that is tolerated, in replicas."""


@dataclass(frozen=True, slots=True)
class ScaleDownLimits:
    """Limits on scaling down in one trace, calculated once for all policies."""

    least: FloatArray
    """The replicas for the observed load and its reserve; 0 if the load is unknown. Shape (steps,)."""
    log_kept: FloatArray
    """The logarithm of the share of the previous step's capacity that each step keeps. Shape (steps,)."""
    window_seconds: float

    def ask(self, desired: FloatArray, fleet: FleetSettings) -> FloatArray:
        """Return the requested replicas for desired ones; both have the shape (steps,)."""
        # The simulation without rules bounds the desired sizes and takes the largest of its window, which this
        # replaces.
        windowed = simulate(
            np.maximum(desired, self.least), replace(fleet, down_window_seconds=self.window_seconds)
        ).asked
        # The capacity at a step is the largest of all earlier ones after their decay since, hence a running maximum.
        decay = np.cumsum(self.log_kept)
        capacity = np.exp(np.maximum.accumulate(np.log(np.maximum(windowed, 1e-300)) - decay) + decay)
        return np.maximum(windowed, np.ceil(capacity - _SLACK))


def scale_down_limits(settings: PredictiveSettings, load: FloatArray, fleet: FleetSettings) -> ScaleDownLimits | None:
    """Return the limits on scaling down for a load of shape (steps,).

    None if neither `scaleDown` nor `connections` is configured.
    """
    scale_down, connections = settings.scale_down, settings.connections
    if scale_down is None and connections is None:
        return None
    kept = {
        sessions: _log(kept_ratio(scale_down.decay_ratio, drain, fleet.step_seconds) if scale_down else 0.0)
        for sessions, drain in ((True, scale_down.drain_seconds if scale_down else None), (False, None))
    }
    # While the load is unknown, the size is held.
    log_kept = np.where(np.isnan(load), 0.0, np.where(load == 0, kept[False], kept[True]))
    if connections is not None:
        log_kept[held_steps(connections, load, fleet.step_seconds)] = 0.0
    least = np.nan_to_num(np.ceil(load * (1 + reserve_ratio(settings)) / fleet.load_per_replica - 1e-9))
    window = scale_down.window_seconds if scale_down else fleet.down_window_seconds
    return ScaleDownLimits(least, log_kept, window)


def held_steps(connections: Connections, load: FloatArray, step_seconds: float) -> BoolArray:
    """Return the steps in which a mass reconnect holds the capacity. Steps longer than a minute show no reconnects."""
    held = np.zeros(len(load), dtype=np.bool_)
    memory = ReconnectMemory()
    for step, value in enumerate(load.tolist()):
        if value == value:  # noqa: PLR0124 - not NaN
            memory = after_observed_load(memory, connections, value, step * step_seconds)
            held[step] = memory.held_until is not None
        else:
            held[step] = memory.held_until is not None and memory.held_until > step * step_seconds
    return held


def _log(kept: float) -> float:
    return max(_NOTHING_KEPT, float(np.log(kept))) if kept > 0 else _NOTHING_KEPT
