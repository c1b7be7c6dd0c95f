"""Explains a decision of the bench by the record of each model and by the bill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.choice.experts import missing_share
from recommender.kinds.predictive.choice.records import ChoiceReason, ModelChoice, ModelRecord
from recommender.kinds.predictive.choice.shortage_sums import COST, TAU, Period
from recommender.kinds.predictive.predictive_settings import ModelName
from recommender.kinds.predictive.simulation.bill import Bill

if TYPE_CHECKING:
    from recommender.kinds.predictive.choice.bench import Bench
    from recommender.kinds.predictive.choice.blend import Blend
    from recommender.kinds.predictive.choice.decided import DecidedWeights

DOUBT_STEPS: Final = 2.0
"""The short steps that are added to both sides of a shown ratio, since a handful of short steps proves nothing."""


@dataclass(frozen=True, slots=True)
class ChoiceMoment:
    """A decision on one series."""

    series: int
    number: int
    step: int
    blend: Blend


def choice_at(bench: Bench, decided: DecidedWeights, moment: ChoiceMoment) -> ModelChoice:
    """Return the decision with the records of all models that have been judged."""
    begins = bench.experts.begins[moment.series]
    records = tuple(
        _record(bench, decided, moment, place) for place, begin in enumerate(begins.tolist()) if moment.number > begin
    )
    reason = ChoiceReason.BETTER
    if not decided.weights[moment.number, moment.series, :-1].any():
        reason = ChoiceReason.NOTHING_KNOWN
    elif decided.stands_in[moment.number, moment.series]:
        reason = ChoiceReason.RECORD_IS_WORSE
    elif moment.blend.leader == ModelName.HEADROOM:
        reason = ChoiceReason.NOT_BETTER
    return ModelChoice(moment.step, moment.blend, _bill(bench, moment), reason, records)


def _record(bench: Bench, decided: DecidedWeights, moment: ChoiceMoment, place: int) -> ModelRecord:
    """Return how a model compares with headroom at the cost of the bill, over the time for which it is judged."""
    series, number = moment.series, moment.number
    begins = bench.begins(number)
    begin = int(begins[series, place])
    family = bench.experts.family
    stretch = Period(family.numbers, family.sums[number, series, place] - family.sums[begin, series, place])
    headroom = _headroom(bench, series, begin, number)
    rival = headroom.at(moment.blend.headroom_ratio)
    found = stretch.at(stretch.at_cost(rival[COST]))
    # A short step lacks this share of its needs, in the experience of headroom.
    doubt = DOUBT_STEPS * np.array([1.0, float(missing_share(rival))])
    versus = (found[TAU:] + doubt) / (rival[TAU:] + doubt)
    return ModelRecord(
        name=bench.experts.names[place],
        judged_seconds=(number - begin) * bench.seconds_between,
        weight=float(decided.weights[number, series, place]),
        cost_as_headroom_ratio=float(headroom.at_cost(stretch.at(1.0)[COST])),
        tau_under_versus_headroom=float(versus[0]),
        theta_under_versus_headroom=float(versus[1]),
    )


def _bill(bench: Bench, moment: ChoiceMoment) -> Bill:
    begin = bench.begin(moment.number)
    load = float(bench.load[moment.number, moment.series] - bench.load[begin, moment.series])
    ratio = moment.blend.headroom_ratio
    cost = float(_headroom(bench, moment.series, begin, moment.number).at(ratio)[COST])
    return Bill(ratio, cost / load - 1 if load > 0 else None)


def _headroom(bench: Bench, series: int, begin: int, number: int) -> Period:
    sums = bench.headroom.sums
    return Period(bench.headroom.numbers, sums[number, series] - sums[begin, series])
