"""The experts of several series, and their weights as decisions follow each other (pure).

All series advance together, one decision at a time: what is decided for one depends on nothing of another, so that a
target among thousands has the verdict that it would have alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.choice.experts import SCALES, experts_of, least_short_steps_a_day, usual_of
from recommender.kinds.predictive.choice.options import BEGINNER
from recommender.kinds.predictive.choice.shortage_sums import COST, Family, Period
from recommender.kinds.predictive.choice.weights import (
    BILL,
    CONFIGURED,
    GAINED,
    REFUTED,
    UNPROVEN,
    after_losses,
    odds_of_models,
    proof_levels,
    shared,
)
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.simulation.frontier import HEADROOM_RATIOS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.predictive.arrays import BoolArray, FloatArray, IntArray
    from recommender.kinds.predictive.choice.options import ChoiceOptions
    from recommender.kinds.predictive.choice.shortage_sums import ShortageScales
    from recommender.kinds.predictive.forecast import ForecastTask

_AS_IT_IS: Final = int(np.flatnonzero(SCALES == 1.0)[0])
_HALF: Final = 0.5


@dataclass(frozen=True, slots=True)
class DecidedWeights:
    """The decisions, in their order."""

    weights: FloatArray
    """Of each expert at the cost that is paid, plain headroom last; shape (decisions, series, experts + 1)."""
    acting: FloatArray
    """The weights of what acts, of the same shape."""
    sizes: FloatArray
    """The scale of each model's room, shape (decisions, series, experts)."""
    ratios: FloatArray
    """Headroom of the cost that is paid, shape (decisions, series)."""


class Bench:
    """The experts of several series, all of which have the same steps and the same fleet."""

    def __init__(
        self,
        uppers: Mapping[str, FloatArray],
        scales: Sequence[ShortageScales],
        task: ForecastTask,
        options: ChoiceOptions,
    ) -> None:
        """`uppers` are the upper forecasts by model, each of shape (series, steps)."""
        self.experts = experts_of(uppers, task.headroom_ratio, scales)
        self.scales = scales
        ratios = np.array(HEADROOM_RATIOS)
        families = np.stack([each.family(each.load, ratios) for each in scales], axis=1)
        self.headroom = Family(ratios, families)
        self._headroom_costs = families[..., COST : COST + 1].copy()
        self.load = np.stack([each.load_replicas() for each in scales], axis=1)
        self.seconds_between = scales[0].seconds_between
        self._task = task
        self._options = options
        self._judged = max(1, int(options.judge_seconds / self.seconds_between))
        series, experts = self.experts.begins.shape
        # The last one is plain headroom.
        self._weights = np.concatenate([np.zeros((series, experts)), np.ones((series, 1))], axis=1)
        self._sizes = np.zeros((series, experts))
        self._ratio = np.full(series, task.headroom_ratio)
        # The same at the cost of the configured headroom, which is paid until models are proven at that of the bill.
        self._tried_weights = self._weights
        self._tried_sizes = self._sizes
        self._configured = np.full(series, task.headroom_ratio)
        self._billed = np.zeros(series)
        self._headroom_shares = np.ones(series)
        self._levels: IntArray = np.full(series, UNPROVEN)

    def decided(self) -> DecidedWeights:
        """Return all decisions, each with what was known then; to be called once."""
        weights, acting, sizes, ratios = [], [], [], []
        for number in range(len(self.load)):
            if number:
                self._learn(number)
            begins = self.begins(number)
            prior = self._prior(number, begins)
            self._weights = shared(self._weights, prior, self._share())
            self._tried_weights = shared(self._tried_weights, prior, self._share())
            self._levels = self._proof_levels(prior)
            if self._weights[:, :-1].any():
                experts, rival = self.experts.family.stretch(begins, number), self._headroom_of_each(begins, number)
                self._ratio = self._bill_ratio(number, experts, rival)
                self._sizes = np.where(begins < number, _sizes_at(self._ratio, experts, rival), 0.0)
                if self._task.budget_ratio is None:
                    self._tried_sizes = np.where(begins < number, _sizes_at(self._configured, experts, rival), 0.0)
            else:
                self._ratio = self._first_ratio(number)
            is_tried = self._levels == CONFIGURED
            weights.append(np.where(is_tried[:, np.newaxis], self._tried_weights, self._weights))
            acting.append(self._acting(weights[-1], prior))
            sizes.append(np.where(is_tried[:, np.newaxis], self._tried_sizes, self._sizes))
            ratios.append(self._acting_ratio())
            # Nothing is paid at the cost of the bill while models act at the configured one.
            self._headroom_shares = np.where(is_tried, 1.0, acting[-1][:, -1])
        found = DecidedWeights(np.stack(weights), np.stack(acting), np.stack(sizes), np.stack(ratios))
        return found if self._task.budget_ratio is not None else _with_beginner(found, self.experts.names)

    def begin(self, number: int) -> int:
        """Return from after which decision on things are judged at a decision."""
        return max(0, number - self._judged)

    def begins(self, number: int) -> IntArray:
        """Return the same for each expert of each series, shape (series, experts)."""
        return np.minimum(np.maximum(number - self._judged, self.experts.begins), number)

    def _learn(self, number: int) -> None:
        """Change the weights by what each expert lost since the last decision, beside headroom of the same cost."""
        if not self._weights[:, :-1].any():
            return
        self._weights = self._weights_after(number, self._weights, self._sizes, self._ratio)
        if self._task.budget_ratio is None:
            self._tried_weights = self._weights_after(number, self._tried_weights, self._tried_sizes, self._configured)

    def _weights_after(self, number: int, weights: FloatArray, sizes: FloatArray, ratio: FloatArray) -> FloatArray:
        """Return the weights after the losses of experts of these sizes, which cost what headroom of the ratio does."""
        begin = self.begin(number)
        seconds = (number - begin) * self.seconds_between
        is_early = number - self.experts.newest(number) <= self._options.early_seconds / self.seconds_between
        least = least_short_steps_a_day(self.scales[0].fleet.step_seconds, is_early)
        usual = usual_of(self.headroom.stretch(begin, number), ratio, seconds, least)
        rival = self.headroom.stretch(number - 1, number).at(ratio)
        found = self.experts.family.stretch(number - 1, number).at(sizes)
        losses = np.where(weights[:, :-1] > 0, usual.losses(found - rival[:, np.newaxis]), 0.0)
        losses = np.concatenate([losses, np.zeros((len(losses), 1))], axis=1)
        return after_losses(weights, losses, self._options.rate)

    def _prior(self, number: int, begins: IntArray) -> FloatArray:
        """Return the weights that experts have before anything is known of them; 0 for those that take no part."""
        least = self._options.least_seconds / self.seconds_between
        known = (number > self.experts.begins) & (number >= self.experts.begins + least)
        takes_part: BoolArray = known & (
            self.experts.bound_ratios(begins, number, self.scales[0].every) <= self._options.most_bound_ratio
        )
        count = takes_part.sum(axis=1, keepdims=True)
        each = (1.0 - self._options.headroom_prior) / np.maximum(count, 1)
        rest = np.where(count > 0, self._options.headroom_prior, 1.0)
        return np.concatenate([np.where(takes_part, each, 0.0), rest], axis=1)

    def _share(self) -> float:
        return float(-np.expm1(-self._options.share_a_day * self.seconds_between / DAY_SECONDS))

    def _first_ratio(self, number: int) -> FloatArray:
        """Return the headroom that acts while no model does: what the budget allows, or the configured one."""
        budget, configured = self._task.budget_ratio, self._task.headroom_ratio
        if budget is None or not number:
            return np.full(len(self._ratio), configured if budget is None else min(budget, configured))
        begin = self.begin(number)
        allowed = (1 + budget) * (self.load[number] - self.load[begin])
        return self.headroom.stretch(begin, number).at_cost(allowed)

    def _bill_ratio(self, number: int, experts: Period, rival: Period) -> FloatArray:
        """Return the headroom that costs as much as the bill of each series allows.

        With a budget, the operator says what it is. Without one, it is what the middle of the experts, by weight, asks
        for to cover the configured quantile, and never less than the configured headroom.
        """
        if self._task.budget_ratio is not None:
            return self._first_ratio(number)
        least = self._task.headroom_ratio
        most = max(least, self._options.most_headroom_ratio)
        weights = self._weights[:, :-1]
        own = rival.at_cost(experts.sums[:, :, _AS_IT_IS, COST])
        is_asked: BoolArray = np.asarray(weights.any(axis=1))
        asked = np.clip(_weighted_medians(own, np.where(is_asked[:, np.newaxis], weights, 1.0)), least, most)
        moves: BoolArray = is_asked & ~self._stays(number, asked)
        most_decisions = self._most_bill_decisions(number)
        billed = self._billed + 1
        if number < self._judged:
            billed = np.minimum(billed, np.floor(most_decisions))
        self._billed = np.where(moves, billed, self._billed)
        moved = self._ratio + (asked - self._ratio) / np.minimum(billed, most_decisions)
        return np.where(moves, moved, np.where(is_asked, self._ratio, least))

    def _proof_levels(self, prior: FloatArray) -> IntArray:
        """Return for each series at which cost the past proves that models know more than headroom does.

        Where they do not, their odds against headroom, divided by those of their prior, are expected to stay 1, so that
        they seldom grow much (Ville's inequality). It holds until they have fallen as much below 1.
        """
        odds, tried = (odds_of_models(each, prior) for each in (self._weights, self._tried_weights))
        return proof_levels(self._levels, odds, tried, self._options.proof_odds)

    def _acting_ratio(self) -> FloatArray:
        """Return the headroom that acts: the configured one until models are proven at the cost of the bill.

        From then on it is that of the bill: to pay now more and now less buys less than a bill that stays.
        """
        if self._task.budget_ratio is not None:
            return self._ratio
        return np.where(np.isin(self._levels, (BILL, REFUTED)), self._ratio, self._task.headroom_ratio)

    def _stays(self, number: int, asked: FloatArray) -> BoolArray:
        """Whether bills stay: headroom leads, a week is known, and what is asked for has not changed by much."""
        far = self._options.far_ratio
        is_near = (self._ratio / far <= asked) & (asked <= self._ratio * far)
        return np.asarray((number >= self._judged) & (self._headroom_shares > self._options.leading_share) & is_near)

    def _most_bill_decisions(self, number: int) -> FloatArray:
        """Return over how many decisions the bill of each series is a running mean, at most.

        Models with few errors ask for much: what they ask for in the first week is remembered for a day at most.
        """
        slow, fast = self._options.bill_days_of_headroom, self._options.bill_days
        slowness = np.zeros(len(self._ratio)) if number < self._judged else self._headroom_shares
        return np.maximum(1.0, (fast + (slow - fast) * slowness) * DAY_SECONDS / self.seconds_between)

    def _acting(self, weights: FloatArray, prior: FloatArray) -> FloatArray:
        """Return the weights of what acts: of headroom, and once models are proven, of those above their prior.

        A model that has gained nothing since nothing was known of it has no evidence for itself.
        """
        earned = weights > np.fmax(prior * GAINED, self._options.least_weight)
        earned &= np.isin(self._levels, (CONFIGURED, BILL))[:, np.newaxis]
        earned[:, -1] = True
        found = np.where(earned, weights, 0.0)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def _headroom_of_each(self, begins: IntArray, number: int) -> Period:
        """Return what headroom cost over the stretch of each expert; sums of shape (series, experts, numbers, 1)."""
        before = self._headroom_costs[begins, np.arange(len(begins))[:, np.newaxis]]
        return Period(self.headroom.numbers, self._headroom_costs[number][:, np.newaxis] - before)


def _sizes_at(ratio: FloatArray, experts: Period, rival: Period) -> FloatArray:
    """Return the scale of each model's room that costs as much as headroom of a ratio, shape (series, experts)."""
    shape = rival.sums.shape[:2]
    return experts.at_cost(rival.at(np.broadcast_to(ratio[:, np.newaxis], shape))[..., COST])


def _with_beginner(decided: DecidedWeights, names: Sequence[str]) -> DecidedWeights:
    """Return the decisions with the model that proves its forecasts, as it is, where no model has been judged."""
    if BEGINNER not in names:
        return decided
    place = names.index(BEGINNER)
    begins = ~decided.weights[..., :-1].any(axis=-1)
    acting, sizes = decided.acting.copy(), decided.sizes.copy()
    acting[begins] = np.arange(acting.shape[-1]) == place
    sizes[begins, place] = 1.0
    return replace(decided, acting=acting, sizes=sizes)


def _weighted_medians(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the values below which half of the weight lies, interpolated: one dear expert is no reason to pay more.

    Both have the shape (series, experts), the answer (series,).
    """
    order = np.argsort(values, axis=1)
    values, weights = np.take_along_axis(values, order, axis=1), np.take_along_axis(weights, order, axis=1)
    places = (np.cumsum(weights, axis=1) - weights / 2) / weights.sum(axis=1, keepdims=True)
    low = np.clip((places <= _HALF).sum(axis=1, keepdims=True) - 1, 0, places.shape[1] - 1)
    high = np.minimum(low + 1, places.shape[1] - 1)
    below, above = np.take_along_axis(places, low, axis=1), np.take_along_axis(places, high, axis=1)
    gap = above - below
    part = np.clip(np.where(gap > 0, (_HALF - below) / np.where(gap > 0, gap, 1.0), 0.0), 0.0, 1.0)
    first, second = np.take_along_axis(values, low, axis=1), np.take_along_axis(values, high, axis=1)
    return np.asarray((first + part * (second - first))[:, 0])
