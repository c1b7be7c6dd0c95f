"""Regret: how much worse auto was than the single model that was best in hindsight, compared at the cost of auto."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.backtest.report import PolicyResult, Regret
from recommender.kinds.predictive.choice.auto import NOT_JUDGED
from recommender.kinds.predictive.simulation.equal_cost import measured_at_cost
from recommender.kinds.predictive.simulation.frontier import Comparison, FrontierPoint, compare

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.simulation.measures import JudgedLoad

HEADROOM: Final = "headroom"


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
