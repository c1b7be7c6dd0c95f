"""Shortage and cost of a simulated fleet.

Source: the elasticity measures of the SPEC Research Group's cloud working group (SPEC-RG-2016-01, "Ready for Rain?"):
theta is the amount of capacity that is missing or idle, and tau is the share of time in which it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.simulation.serving import needed_replicas

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray
    from recommender.kinds.predictive.simulation.serving import Fleet, FleetSettings


@dataclass(frozen=True, slots=True, eq=False)
class JudgedLoad:
    """A load, with the steps in which policies are judged and the fleet that serves it. Arrays have shape (steps,)."""

    load: FloatArray
    """The load of each step; NaN where it is unknown."""
    steps: BoolArray
    """The judged steps; those whose load is unknown do not count."""
    fleet: FleetSettings


@dataclass(frozen=True, slots=True)
class Measures:
    """Shortage and cost over the judged steps."""

    replica_hours: float
    tau_under_percent: float
    theta_under_percent: float
    tau_over_percent: float
    theta_over_percent: float
    lost_load_ratio: float
    """Load above the serving capacity, as a share of all load."""
    changes: int
    worst_shortage_replicas: int


def measure(judged: JudgedLoad, fleet: Fleet) -> Measures:
    """Return the measures of a simulated fleet over the judged steps whose load is known."""
    load, settings = judged.load, judged.fleet
    counted = judged.steps & ~np.isnan(load)
    steps = int(counted.sum())
    if steps == 0:
        return Measures(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0)
    needed = needed_replicas(load[counted], settings.load_per_replica)
    serving, known = fleet.serving[counted], load[counted]
    missing, idle = np.maximum(needed - serving, 0), np.maximum(serving - needed, 0)
    lost, total = np.maximum(known - serving * settings.load_per_replica, 0).sum(), known.sum()
    return Measures(
        replica_hours=float(fleet.asked[counted].sum() * settings.step_seconds / 3600),
        tau_under_percent=float(100 * (missing > 0).mean()),
        theta_under_percent=float(100 * (missing / needed).mean()),
        tau_over_percent=float(100 * (idle > 0).mean()),
        theta_over_percent=float(100 * (idle / needed).mean()),
        lost_load_ratio=float(lost / total) if total else 0.0,
        changes=int(fleet.changes[counted].sum()),
        worst_shortage_replicas=int(missing.max()),
    )
