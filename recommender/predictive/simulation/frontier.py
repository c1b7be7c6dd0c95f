"""Plain headroom at every cost: what a policy is compared with.

A forecast that asks for more replicas is short less often; so is anybody who adds headroom. Only the shortage at equal
replica-hours tells whether the forecast knows something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.predictive.simulation.measures import measure
from recommender.predictive.simulation.serving import desired_replicas, simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.predictive.arrays import BoolArray, FloatArray
    from recommender.predictive.simulation.measures import Measures
    from recommender.predictive.simulation.serving import FleetSettings

HEADROOM_RATIOS = (
    *(round(0.01 * percent, 2) for percent in range(30)),
    *(round(0.01 * percent, 2) for percent in range(30, 100, 5)),
    *(round(0.1 * tenths, 1) for tenths in range(10, 41, 2)),
)
ONLY_THE_POLICY = 999.0
"""The ratio where the policy has a shortage and headroom at the same cost has none."""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """Plain headroom of one size."""

    headroom_ratio: float
    measures: Measures


@dataclass(frozen=True, slots=True)
class Comparison:
    """A policy beside plain headroom at the same replica-hours; below 1 the policy is better."""

    cost_as_headroom_ratio: float
    tau_under_versus_headroom: float | None
    """None where neither has a shortage."""
    theta_under_versus_headroom: float | None
    lost_load_versus_headroom: float | None
    changes_versus_headroom: float | None


def frontier(load: FloatArray, judged: BoolArray, settings: FleetSettings) -> tuple[FrontierPoint, ...]:
    """Return plain headroom at each ratio; `load` has shape (steps,)."""
    return tuple(
        FrontierPoint(
            ratio,
            measure(
                load,
                simulate(desired_replicas(load * (1 + ratio), settings.load_per_replica), settings),
                judged,
                settings,
            ),
        )
        for ratio in HEADROOM_RATIOS
    )


def compare(measures: Measures, points: Sequence[FrontierPoint]) -> Comparison:
    """Return the policy's shortage relative to headroom's, interpolated at the policy's replica-hours."""
    hours = np.array([point.measures.replica_hours for point in points])

    def at_same_cost(values: Sequence[float]) -> float:
        return float(np.interp(measures.replica_hours, hours, np.array(values)))

    return Comparison(
        cost_as_headroom_ratio=at_same_cost([point.headroom_ratio for point in points]),
        tau_under_versus_headroom=_ratio(
            measures.tau_under_percent, at_same_cost([point.measures.tau_under_percent for point in points])
        ),
        theta_under_versus_headroom=_ratio(
            measures.theta_under_percent, at_same_cost([point.measures.theta_under_percent for point in points])
        ),
        lost_load_versus_headroom=_ratio(
            measures.lost_load_ratio, at_same_cost([point.measures.lost_load_ratio for point in points])
        ),
        changes_versus_headroom=_ratio(
            float(measures.changes), at_same_cost([float(point.measures.changes) for point in points])
        ),
    )


def _ratio(policy: float, headroom: float) -> float | None:
    if headroom > 0:
        return policy / headroom
    return ONLY_THE_POLICY if policy > 0 else None
