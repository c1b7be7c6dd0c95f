"""Plain headroom at a range of costs, with which policies are compared.

A forecast that requests more replicas is short less often, but so is a larger plain headroom. Only the shortage at
equal replica-hours shows whether the forecast is of any use.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from recommender.kinds.predictive.simulation.measures import measure
from recommender.kinds.predictive.simulation.serving import desired_replicas, simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.simulation.measures import JudgedLoad, Measures
    from recommender.kinds.predictive.simulation.serving import Fleet

HEADROOM_RATIOS = (
    *(round(0.01 * percent, 2) for percent in range(30)),
    *(round(0.01 * percent, 2) for percent in range(30, 100, 5)),
    *(round(0.1 * tenths, 1) for tenths in range(10, 41, 2)),
)
_LARGEST_RATIO = 1000.0
_LEAST_EXTENDED = 0.1
_RATIO_GROWTH = 1.25
ONLY_THE_POLICY = 999.0
"""The ratio if the policy has a shortage and headroom at the same cost has none."""


Act: TypeAlias = "Callable[[FloatArray], Fleet]"
"""A function from desired replicas to the fleet, the same for the frontier and for every policy."""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """Plain headroom of one size."""

    headroom_ratio: float
    measures: Measures


@dataclass(frozen=True, slots=True)
class Comparison:
    """A policy compared with plain headroom at the same replica-hours; ratios below 1 are in favour of the policy."""

    cost_as_headroom_ratio: float
    tau_under_versus_headroom: float | None
    """The policy's share of time with a shortage, relative to headroom's; None if neither has a shortage."""
    theta_under_versus_headroom: float | None
    lost_load_versus_headroom: float | None
    changes_versus_headroom: float | None


def frontier(
    judged: JudgedLoad, replica_hours: float = 0.0, act: Act | None = None, ratios: Sequence[float] = HEADROOM_RATIOS
) -> tuple[FrontierPoint, ...]:
    """Return plain headroom at each ratio, and at larger ones until it costs `replica_hours` or cannot cost more.

    `act` replaces the plain simulation.
    """
    act = act or partial(simulate, settings=judged.fleet)
    found = [_point(ratio, judged, act) for ratio in ratios]
    while found[-1].measures.replica_hours < replica_hours and found[-1].headroom_ratio < _LARGEST_RATIO:
        ratio = float(f"{max(found[-1].headroom_ratio, _LEAST_EXTENDED) * _RATIO_GROWTH:.2g}")
        point = _point(ratio, judged, act)
        if point.measures.replica_hours <= found[-1].measures.replica_hours:
            break
        found.append(point)
    return tuple(found)


def _point(ratio: float, judged: JudgedLoad, act: Act) -> FrontierPoint:
    desired = desired_replicas(judged.load * (1 + ratio), judged.fleet.load_per_replica)
    return FrontierPoint(ratio, measure(judged, act(desired)))


def compare(measures: Measures, points: Sequence[FrontierPoint]) -> Comparison:
    """Return the policy's shortage relative to headroom's, interpolated at the policy's replica-hours.

    A policy that costs less than a fleet without headroom is compared with that fleet. For a policy that costs more
    than the largest headroom, `frontier` has to reach its replica-hours.
    """
    # If several ratios cost the same, they are the same fleet, and the smallest ratio names it.
    hours, first = np.unique([point.measures.replica_hours for point in points], return_index=True)
    kept = [points[index] for index in first]

    def at_same_cost(value: Callable[[FrontierPoint], float]) -> float:
        return float(np.interp(measures.replica_hours, hours, [value(point) for point in kept]))

    def versus(policy: float, value: Callable[[Measures], float]) -> float | None:
        return _ratio(policy, at_same_cost(lambda point: value(point.measures)))

    return Comparison(
        cost_as_headroom_ratio=at_same_cost(lambda point: point.headroom_ratio),
        tau_under_versus_headroom=versus(measures.tau_under_percent, lambda each: each.tau_under_percent),
        theta_under_versus_headroom=versus(measures.theta_under_percent, lambda each: each.theta_under_percent),
        lost_load_versus_headroom=versus(measures.lost_load_ratio, lambda each: each.lost_load_ratio),
        changes_versus_headroom=versus(float(measures.changes), lambda each: float(each.changes)),
    )


def _ratio(policy: float, headroom: float) -> float | None:
    if headroom > 0:
        return policy / headroom
    return ONLY_THE_POLICY if policy > 0 else None
