"""What a regret consists of: the cost that is not known, the proof, the scales that are not known, and the weights.

Each part is what `auto` would gain if it were spared one more thing. First it knows its cost beforehand, as with a
budget. Then it needs no proof. Then it knows the scale at which each model has this cost over all judged steps. What is
left is the regret of the weights alone, as the fixed share forecaster learns them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.backtest.verdict import scale_at_cost, scaled_capacity, shortage_of
from recommender.kinds.predictive.choice.auto import NOT_JUDGED, PlayedChoices, choice_limits
from recommender.kinds.predictive.choice.blend import room_of
from recommender.kinds.predictive.choice.experts import LEAST_SHORT_STEPS_A_DAY, usual_of
from recommender.kinds.predictive.choice.options import DEFAULT_OPTIONS
from recommender.kinds.predictive.choice.shortage_sums import Family, ShortageScales
from recommender.kinds.predictive.choice.weights import after_losses, prior_weights, shared_weights
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.simulation.bill import above_load_ratio
from recommender.kinds.predictive.simulation.frontier import HEADROOM_RATIOS, compare, frontier
from recommender.kinds.predictive.simulation.measures import measure
from recommender.kinds.predictive.simulation.serving import desired_replicas, simulate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.backtest.report import Regret
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.forecast import Forecasts, ForecastTask
    from recommender.kinds.predictive.history import LoadHistory
    from recommender.kinds.predictive.simulation.frontier import Comparison
    from recommender.kinds.predictive.simulation.measures import JudgedLoad

_NO_PROOF: Final = 1.0
"""The odds with which models act from the beginning."""


@dataclass(frozen=True, slots=True)
class RegretParts:
    """The parts of a regret, whose sum it is; a negative one means that knowing more would have been worse."""

    cost: float
    """Auto does not know its cost beforehand: it begins with that of the configured headroom, and changes it."""
    proof: float
    """Auto lets models act only once they are proven."""
    scales: float
    """Auto does not know the scale at which each model has this cost, and takes it from the last week."""
    weights: float
    """Auto does not know which model is best, and learns it from losses."""


@dataclass(frozen=True, slots=True)
class ReplayedLoad:
    """The load on which a choice is replayed, with the forecasts of each model."""

    history: LoadHistory
    forecasts: Mapping[str, Forecasts]
    task: ForecastTask
    judged: JudgedLoad


def regret_parts(replayed: ReplayedLoad, auto: Comparison, replica_hours: float, regret: Regret) -> RegretParts | None:
    """Return the parts of the regret of `auto`, which costs these replica-hours; None without any load."""
    judged = replayed.judged
    budget = above_load_ratio(judged, replica_hours)
    if budget is None:
        return None
    task = replace(replayed.task, budget_ratio=budget)
    proven, unproven = (
        _shortage(
            judged,
            PlayedChoices(
                replayed.history,
                replayed.forecasts,
                task,
                judged.fleet,
                options=replace(DEFAULT_OPTIONS, proof_odds=odds),
            ).capacity[0],
        )
        for odds in (DEFAULT_OPTIONS.proof_odds, _NO_PROOF)
    )
    scaled = _shortage(judged, _capacity_at_known_scales(replayed, auto.cost_as_headroom_ratio, replica_hours))
    shortage = regret.best_shortage + regret.regret
    return RegretParts(shortage - proven, proven - unproven, unproven - scaled, scaled - regret.best_shortage)


def _shortage(judged: JudgedLoad, capacity: FloatArray) -> float:
    """Return the shortage of a policy relative to headroom at the same cost: the mean of both measures."""
    found = measure(judged, simulate(desired_replicas(capacity, judged.fleet.load_per_replica), judged.fleet))
    return shortage_of(compare(found, frontier(judged, found.replica_hours)))


def _capacity_at_known_scales(replayed: ReplayedLoad, headroom_ratio: float, replica_hours: float) -> FloatArray:
    """Return the mean of headroom and of models that all cost this much over all judged steps, by learned weights."""
    judged, load = replayed.judged, replayed.judged.load
    limits = choice_limits(replayed.history, replayed.task)[0]
    rooms = [
        room_of(load, found.upper[0], replayed.task.headroom_ratio)
        for name, found in replayed.forecasts.items()
        if name not in NOT_JUDGED
    ]
    capacities = np.stack(
        [
            *(
                scaled_capacity(load, room, scale_at_cost(judged, room, replica_hours, limits), limits)
                for room in rooms
            ),
            load * (1 + headroom_ratio),
        ]
    )
    every = max(1, round(DEFAULT_OPTIONS.decide_seconds / replayed.history.step_seconds))
    scales = ShortageScales(load, limits, judged.fleet, every)
    weights = _learned_weights(scales, capacities, headroom_ratio, int(np.flatnonzero(judged.steps)[0]) // every)
    by_step = weights[np.arange(len(load)) // every]
    return np.asarray((by_step.T * capacities).sum(axis=0))


def _learned_weights(
    scales: ShortageScales, capacities: FloatArray, headroom_ratio: float, first_judged: int
) -> FloatArray:
    """Return the weights after each decision, shape (decisions, experts); headroom is the last expert.

    What headroom usually loses in a day is that of all judged steps.
    """
    ratios = np.array(HEADROOM_RATIOS)
    sums = scales.family(ratios[:, np.newaxis] * scales.load)
    decisions = len(sums) - 1
    usual = usual_of(
        Family(ratios, sums).stretch(first_judged, decisions),
        np.array(headroom_ratio),
        (decisions - first_judged) * scales.seconds_between,
        np.array(LEAST_SHORT_STEPS_A_DAY),
        np.array(1.0),
    )
    found = np.diff(np.moveaxis(scales.sums_at(capacities), -1, 0), axis=0)
    losses = usual.losses(found - found[:, -1:])
    prior = prior_weights(np.ones(len(capacities) - 1, dtype=bool), DEFAULT_OPTIONS.headroom_prior)
    share = -np.expm1(-DEFAULT_OPTIONS.share_a_day * scales.seconds_between / DAY_SECONDS)
    weights = [prior]
    for each in losses:
        weights.append(shared_weights(after_losses(weights[-1], each, DEFAULT_OPTIONS.rate), prior, float(share)))
    return np.stack(weights)
