"""The bills of several series: the headroom that costs as much as each series may pay (pure).

With `budget`, the operator decides the bill. Without one, it slowly follows what the models request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.arrays import limited
from recommender.kinds.predictive.choice.experts import SCALES
from recommender.kinds.predictive.choice.shortage_sums import COST
from recommender.kinds.predictive.choice.weights import BILL, REFUTED, weighted_medians
from recommender.kinds.predictive.history import DAY_SECONDS

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray
    from recommender.kinds.predictive.choice.experts import JudgedPeriod
    from recommender.kinds.predictive.choice.mixture_state import MixtureState
    from recommender.kinds.predictive.choice.options import ChoiceOptions
    from recommender.kinds.predictive.choice.shortage_sums import Family
    from recommender.kinds.predictive.forecast import ForecastTask

_AS_IT_IS: Final = int(np.flatnonzero(SCALES == 1.0)[0])


@dataclass(frozen=True, slots=True)
class Bills:
    """How bills are determined. Ratios have the shape (series,)."""

    task: ForecastTask
    options: ChoiceOptions
    headroom: Family
    load: FloatArray
    """Running sums of the load in replicas, shape (decisions, series)."""
    seconds_between: float
    judged_decisions: int
    """Number of decisions over which costs are measured."""

    def first_ratio(self, number: int, series: int) -> FloatArray:
        """Return the headroom that acts while no model does, shape (series).

        With a budget, it is the headroom that costs as much as the budget allows, and for the first decision the
        smaller one of budget and configured headroom. Without a budget, it is the configured headroom.
        """
        budget, configured = self.task.budget_ratio, self.task.headroom_ratio
        if budget is None or not number:
            return np.full(series, configured if budget is None else min(budget, configured))
        begin = max(0, number - self.judged_decisions)
        allowed = (1 + budget) * (self.load[number] - self.load[begin])
        return self.headroom.stretch(begin, number).at_cost(allowed)

    def ratio(self, state: MixtureState, number: int, judged: JudgedPeriod, headroom_shares: FloatArray) -> FloatArray:
        """Return the headroom that costs as much as the bill of each series allows.

        With a budget, the operator decides the bill. Without one, it is the cost at which the weighted median of the
        experts covers the configured quantile, and never less than that of the configured headroom.
        """
        if self.task.budget_ratio is not None:
            return self.first_ratio(number, len(state.ratio))
        least = self.task.headroom_ratio
        most = max(least, self.options.most_headroom_ratio)
        weights = state.weights[:, :-1]
        own = judged.rival.at_cost(judged.experts.sums[:, :, _AS_IT_IS, COST])
        is_asked: BoolArray = np.asarray(weights.any(axis=1))
        asked = limited(weighted_medians(own, np.where(is_asked[:, np.newaxis], weights, 1.0)), least, most)
        is_young = self.is_young(state, number)
        moves: BoolArray = is_asked & ~self._stays(state, is_young, asked, headroom_shares)
        most_decisions = self._most_decisions(is_young, headroom_shares)
        billed = state.billed + 1
        billed = np.where(is_young, np.minimum(billed, np.floor(most_decisions)), billed)
        state.billed = np.where(moves, billed, state.billed)
        moved = state.ratio + (asked - state.ratio) / np.minimum(billed, most_decisions)
        return np.where(moves, moved, np.where(is_asked, state.ratio, least))

    def acting_ratio(self, state: MixtureState) -> FloatArray:
        """Return the headroom that acts: the configured one until models are proven at the cost of the bill.

        From then on, it is the headroom of the bill, since a varying cost buys less than a constant one.
        """
        if self.task.budget_ratio is not None:
            return state.ratio
        levels = state.levels
        return np.where((levels == BILL) | (levels == REFUTED), state.ratio, self.task.headroom_ratio)

    def is_young(self, state: MixtureState, number: int) -> BoolArray:
        """Return which series have a history shorter than the time over which costs are measured."""
        return np.asarray(number - state.began < self.judged_decisions)

    def _stays(
        self, state: MixtureState, is_young: BoolArray, asked: FloatArray, headroom_shares: FloatArray
    ) -> BoolArray:
        """Return which bills stay: headroom leads, a week is known, and the requested capacity has changed little."""
        far = self.options.far_ratio
        is_near = (state.ratio / far <= asked) & (asked <= state.ratio * far)
        return np.asarray(~is_young & (headroom_shares > self.options.leading_share) & is_near)

    def _most_decisions(self, is_young: BoolArray, headroom_shares: FloatArray) -> FloatArray:
        """Return the largest number of decisions over which each series' bill is a running mean.

        Models request a lot while few of their errors are known, so requests of the first week are remembered for at
        most a day.
        """
        slow, fast = self.options.bill_days_of_headroom, self.options.bill_days
        slowness = np.where(is_young, 0.0, headroom_shares)
        return np.maximum(1.0, (fast + (slow - fast) * slowness) * DAY_SECONDS / self.seconds_between)
