"""The cost of a policy, as plain headroom of the same cost and as the share by which it exceeds the load's cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.simulation.frontier import compare, frontier
from recommender.kinds.predictive.simulation.measures import JudgedLoad, measure
from recommender.kinds.predictive.simulation.serving import desired_replicas, simulate

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.simulation.serving import FleetSettings


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost of a policy."""

    as_headroom_ratio: float
    """The ratio of plain headroom with the same cost."""
    above_load_ratio: float | None
    """The share by which replica-hours exceed those that the load itself fills; None if no load was seen."""


def bill_of(load: FloatArray, capacity: FloatArray, fleet: FleetSettings) -> Bill:
    """Return the cost of a policy from its capacity in units of load; load and capacity have the shape (steps,)."""
    judged = JudgedLoad(load, np.ones(len(load), dtype=bool), fleet)
    found = measure(judged, simulate(desired_replicas(capacity, fleet.load_per_replica), fleet))
    ratio = compare(found, frontier(judged, found.replica_hours)).cost_as_headroom_ratio
    return Bill(ratio, above_load_ratio(judged, found.replica_hours))


def above_load_ratio(judged: JudgedLoad, replica_hours: float) -> float | None:
    """Return the share by which replica-hours exceed what the load of the judged steps fills; None without load."""
    fleet = judged.fleet
    filled = float(np.nansum(judged.load[judged.steps])) / fleet.load_per_replica * fleet.step_seconds / 3600
    above = replica_hours / filled - 1 if filled > 0 else math.inf
    return above if math.isfinite(above) else None
