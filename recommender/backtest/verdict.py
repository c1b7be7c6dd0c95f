"""Judges a backtest: the policy that won, the one that auto used most, and the regret against the best model."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.backtest.replayed_policies import AUTO, HEADROOM, model_policy_name
from recommender.backtest.report import BacktestVerdict, PolicyResult, Regret
from recommender.kinds.predictive.choice.auto import NOT_JUDGED
from recommender.kinds.predictive.predictive_settings import ModelName
from recommender.kinds.predictive.simulation.frontier import Comparison, FrontierPoint, compare
from recommender.kinds.predictive.simulation.measures import measure
from recommender.kinds.predictive.simulation.serving import desired_replicas, simulate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.predictive.arrays import BoolArray, FloatArray
    from recommender.kinds.predictive.simulation.measures import JudgedLoad, Measures


_AS_GOOD = 1.0
_LEAST = 1e-6
_LARGEST_SCALE: Final = 16.0
_HALVINGS: Final = 16


def verdict(results: Sequence[PolicyResult], used: Sequence[str], judged: BoolArray) -> BacktestVerdict:
    """Return the verdict; `used` names the model that auto used at each step, or `headroom`."""
    auto = next(result for result in results if result.name == AUTO)
    return BacktestVerdict(best=min(results, key=_rank).name, use=_most_used(used, judged), comparison=auto.comparison)


def _rank(result: PolicyResult) -> tuple[float, float]:
    """Return the sort key of a policy: the product of both shortage ratios, then the cost; less is better."""
    product = 1.0
    for ratio in (result.comparison.tau_under_versus_headroom, result.comparison.theta_under_versus_headroom):
        product *= _AS_GOOD if ratio is None else max(ratio, _LEAST)
    return product, result.measures.replica_hours


def _most_used(used: Sequence[str], judged: BoolArray) -> str:
    plain = {HEADROOM, ModelName.REACTIVE.value}
    names = [
        HEADROOM if name in plain else model_policy_name(name)
        for name, is_judged in zip(used, judged, strict=True)
        if is_judged
    ]
    return Counter(names).most_common(1)[0][0] if names else HEADROOM


def measured_at_cost(
    judged: JudgedLoad, room: FloatArray, replica_hours: float, limits: FloatArray | None = None
) -> Measures:
    """Return the measures of `load + scale x room` at the scale of `scale_at_cost`."""
    return _measured_at(judged, room, scale_at_cost(judged, room, replica_hours, limits), limits)


def scale_at_cost(
    judged: JudgedLoad, room: FloatArray, replica_hours: float, limits: FloatArray | None = None
) -> float:
    """Return the scale from 0 to 16 at which `load + scale x room` costs this many replica-hours.

    The scale is 0 if the load costs more even without any room. `limits` are the largest capacity that may be
    requested, None for any. Arrays have the shape (steps,).
    """
    low, high = 0.0, _LARGEST_SCALE
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _measured_at(judged, room, middle, limits).replica_hours <= replica_hours:
            low = middle
        else:
            high = middle
    return low


def scaled_capacity(load: FloatArray, room: FloatArray, scale: float, limits: FloatArray | None) -> FloatArray:
    """Return `load + scale x room` within the limits, in units of load."""
    capacity = load + scale * room
    return capacity if limits is None else np.minimum(capacity, limits)


def _measured_at(judged: JudgedLoad, room: FloatArray, scale: float, limits: FloatArray | None) -> Measures:
    capacity = scaled_capacity(judged.load, room, scale, limits)
    return measure(judged, simulate(desired_replicas(capacity, judged.fleet.load_per_replica), judged.fleet))


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
