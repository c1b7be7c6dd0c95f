"""Regret: how much worse auto was than the single model that was best in hindsight, compared at the cost of auto."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.backtest.report import PolicyResult, Regret
from recommender.kinds.predictive.choice.auto import NOT_JUDGED
from recommender.kinds.predictive.simulation.frontier import Comparison, FrontierPoint, compare
from recommender.kinds.predictive.simulation.measures import measure
from recommender.kinds.predictive.simulation.serving import desired_replicas, simulate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.simulation.measures import JudgedLoad, Measures

HEADROOM: Final = "headroom"
_LARGEST_SCALE: Final = 16.0
_HALVINGS: Final = 16


def measured_at_cost(
    judged: JudgedLoad, room: FloatArray, replica_hours: float, limits: FloatArray | None = None
) -> Measures:
    """Return the measures of `load + scale x room`, at the scale from 0 to 16 that costs this many replica-hours.

    If the load costs more even without any room, its measures without room are returned. `limits` are the largest
    capacity that may be requested, None for any. Arrays have the shape (steps,).
    """

    def at(scale: float) -> Measures:
        capacity = judged.load + scale * room
        asked = capacity if limits is None else np.minimum(capacity, limits)
        return measure(judged, simulate(desired_replicas(asked, judged.fleet.load_per_replica), judged.fleet))

    low, high = 0.0, _LARGEST_SCALE
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if at(middle).replica_hours <= replica_hours:
            low = middle
        else:
            high = middle
    return at(low)


def shortage_of(comparison: Comparison) -> float:
    """Return the mean of both measures of shortage, each 1 if neither the policy nor headroom has any shortage."""
    tau, theta = comparison.tau_under_versus_headroom, comparison.theta_under_versus_headroom
    return ((1.0 if tau is None else tau) + (1.0 if theta is None else theta)) / 2


def regret_of(
    auto: PolicyResult,
    rooms: Mapping[str, FloatArray],
    limits: FloatArray,
    judged: JudgedLoad,
    points: Sequence[FrontierPoint],
) -> Regret:
    """Return how `auto` compares with the best single model in hindsight.

    `rooms` is the capacity above the load that each model requested, `limits` the largest capacity that any of them may
    request, however much it is scaled, and `points` the frontier of plain headroom.
    """
    best, least = HEADROOM, 1.0
    for name, room in rooms.items():
        if name not in NOT_JUDGED:
            held = measured_at_cost(judged, room, auto.measures.replica_hours, limits)
            if (found := shortage_of(compare(held, points))) < least:
                best, least = name, found
    return Regret(best, least, shortage_of(auto.comparison) - least)
