"""The cost of a policy, as plain headroom of the same cost and as the share by which it exceeds the load's cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.simulation.frontier import compare, frontier, reaching
from recommender.kinds.predictive.simulation.measures import measure
from recommender.kinds.predictive.simulation.serving import desired_replicas, simulate

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray
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
    counted = np.ones(len(load), dtype=bool)
    found = measure(load, simulate(desired_replicas(capacity, fleet.load_per_replica), fleet), counted, fleet)
    points = reaching(frontier(load, counted, fleet), found.replica_hours, load, counted, fleet)
    ratio = compare(found, points).cost_as_headroom_ratio
    return Bill(ratio, above_load_ratio(load, counted, found.replica_hours, fleet))


def above_load_ratio(load: FloatArray, judged: BoolArray, replica_hours: float, fleet: FleetSettings) -> float | None:
    """Return the share by which replica-hours exceed what the load of the judged steps fills; None without load."""
    filled = float(np.nansum(load[judged])) / fleet.load_per_replica * fleet.step_seconds / 3600
    above = replica_hours / filled - 1 if filled > 0 else math.inf
    return above if math.isfinite(above) else None
