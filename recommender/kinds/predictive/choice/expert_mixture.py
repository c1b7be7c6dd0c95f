"""The mixture of experts of several series, and how their weights change from decision to decision (pure).

All series advance together, one decision at a time. Decisions on one series do not depend on other series, so that a
target among thousands gets the same verdict as it would alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.choice.bills import Bills
from recommender.kinds.predictive.choice.decided import DecidedWeights, DecisionInForce, with_beginner
from recommender.kinds.predictive.choice.evidence import after_gains, growth_of_odds, paired_weights, weights_of_both
from recommender.kinds.predictive.choice.experts import (
    LEAST_SHORT_STEPS_A_DAY,
    JudgedPeriod,
    experts_of,
    least_short_steps_a_day,
    usual_of,
    worth_of_replica,
)
from recommender.kinds.predictive.choice.mixture_state import DecisionClock, first_state, resumption_of
from recommender.kinds.predictive.choice.own_record import sums_of_parts
from recommender.kinds.predictive.choice.payment import needed_odds, paid_ratio, part_of_way, weights_between
from recommender.kinds.predictive.choice.shortage_sums import COST, Family, Period
from recommender.kinds.predictive.choice.weights import (
    BILL,
    CONFIGURED,
    acting_weights,
    after_losses,
    headroom_in,
    odds_of_models,
    prior_weights,
    proof_levels,
    shared_weights,
)
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.simulation.frontier import HEADROOM_RATIOS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.predictive.arrays import BoolArray, FloatArray, IntArray
    from recommender.kinds.predictive.choice.experts import Usual
    from recommender.kinds.predictive.choice.options import ChoiceOptions
    from recommender.kinds.predictive.choice.series_proof import SeriesProof
    from recommender.kinds.predictive.choice.shortage_sums import ShortageScales
    from recommender.kinds.predictive.forecast import ForecastTask

_LEAST_SHORT: Final = np.array(LEAST_SHORT_STEPS_A_DAY)


class ExpertMixture:
    """The experts of several series, all of which have the same steps and the same fleet."""

    def __init__(
        self,
        uppers: Mapping[str, FloatArray],
        scales: Sequence[ShortageScales],
        task: ForecastTask,
        options: ChoiceOptions,
        first_step: int = 0,
        proofs: Sequence[SeriesProof | None] = (),
    ) -> None:
        """`uppers` are the upper forecasts by model, each of shape (series, steps).

        `first_step` is the step of the first decision, counted from the Unix epoch, and `proofs` are the states from
        which series resume; None for a series that begins anew.
        """
        self.experts = experts_of(uppers, task.headroom_ratio, scales)
        self.scales = scales
        ratios = np.array(HEADROOM_RATIOS)
        families = np.stack([each.family(ratios[:, np.newaxis] * each.load) for each in scales], axis=1)
        self.headroom = Family(ratios, families)
        self._headroom_costs = families[..., COST : COST + 1].copy()
        self.load = np.stack([each.load_replicas() for each in scales], axis=1)
        self.seconds_between = scales[0].seconds_between
        self._task = task
        self._options = options
        self._share = float(-np.expm1(-options.share_a_day * self.seconds_between / DAY_SECONDS))
        self._judged = max(1, int(options.judge_seconds / self.seconds_between))
        self._bills = Bills(task, options, self.headroom, self.load, self.seconds_between, self._judged)
        series, experts = self.experts.begins.shape
        self._state = first_state(series, experts, task.headroom_ratio)
        self._configured = np.full(series, task.headroom_ratio)
        self._headroom_shares = np.ones(series)
        self._in_force: DecisionInForce | None = None
        self._clock = DecisionClock(first_step, scales[0].every, scales[0].fleet.step_seconds, len(self.load))
        self._given = tuple(proofs[place] if place < len(proofs) else None for place in range(series))
        self._resumption = resumption_of(self._given, self._clock)
        self.experts = replace(self.experts, begins=self._resumption.begins(self.experts))
        self._priors = self._priors_of_decisions()
        self.proofs: tuple[SeriesProof | None, ...] = (None,) * series
        """The proof of each series, set once all decisions have been made; None while a series is too young."""

    def decide(self) -> DecidedWeights:
        """Return all decisions, each made from what was known at its time; to be called once.

        If all series resume from stored states, the decisions before these states are not made again.
        """
        first = self._resumption.first
        kept = len(self.load) - 1 - int(np.ceil(self._options.kept_seconds / self.seconds_between))
        decisions: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray, BoolArray]] = []
        for number in range(first, len(self.load)):
            if number > first:
                self._learn(number)
            decisions.append(self._decision_fields(number))
            if number == kept:
                self._keep(number)
        self._keep_given(kept)
        decisions = [decisions[0]] * first + decisions
        found = DecidedWeights(*(np.stack(each) for each in zip(*decisions, strict=True)))
        return found if self._task.budget_ratio is not None else with_beginner(found, self.experts.names)

    def _decision_fields(self, number: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, BoolArray]:
        """Return the fields of `DecidedWeights` for one decision."""
        state, prior, judged = self._state, self._priors[number], self._judged_period(number)
        # Thousands of decisions in a row mostly take the time of calls to numpy: one for both costs, and `np.array`,
        # which is several times as quick as `np.stack` for rows of a few numbers.
        weights = shared_weights(np.array([state.weights, state.tried_weights]), prior, self._share)
        evidence = shared_weights(np.array([state.evidence, state.tried_evidence]), paired_weights(prior), self._share)
        state.weights, state.tried_weights = weights
        state.evidence, state.tried_evidence = evidence
        state.levels = self._proof_levels(weights_of_both(weights, evidence), prior)
        if state.weights[:, :-1].any():
            state.ratio = self._bills.ratio(state, number, judged, self._headroom_shares)
            if self._task.budget_ratio is None:
                state.sizes, state.tried_sizes = judged.sizes(np.array([state.ratio, self._configured]))
            else:
                state.sizes = judged.sizes(state.ratio)
        else:
            state.ratio = self._bills.first_ratio(number, len(state.ratio))
        self._resumption.resume(state, number, self.experts.names)
        is_tried = state.levels == CONFIGURED
        column = is_tried[:, np.newaxis]
        evidence = np.where(column, state.tried_evidence, state.evidence)
        weights = weights_of_both(np.where(column, state.tried_weights, state.weights), evidence)
        # Nothing is paid at the cost of the bill while models act at the configured one.
        acting = acting_weights(weights, prior, state.levels, self._options.least_weight)
        self._headroom_shares = np.where(is_tried, 1.0, acting[:, -1])
        sizes = np.where(column, state.tried_sizes, state.sizes)
        return self._paid_for(number, weights, acting, sizes, judged)

    def _paid_for(
        self, number: int, weights: FloatArray, acting: FloatArray, sizes: FloatArray, judged: JudgedPeriod
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, BoolArray]:
        """Return the fields of `DecidedWeights` for one decision; `weights` and `acting` are those at the proven cost.

        A cost below the bill is paid only if the models have enough evidence at that cost. While the past actions have
        a worse record than constant headroom of the same mean cost, headroom stands in for the models, until they have
        proven themselves again.
        """
        state, options, prior = self._state, self._options, self._priors[number]
        wanted = self._bills.acting_ratio(state)
        if self._task.budget_ratio is not None:
            return weights, acting, sizes, wanted, np.zeros(len(wanted), dtype=bool)
        is_young = self._bills.is_young(state, number)
        is_proven_again = state.record.regained >= options.proof_odds
        state.record = state.record.begin(is_young | is_proven_again, np.where(is_young, wanted, state.record.ratio))
        mean = state.record.ratio
        usual = self._usual(number, mean, _LEAST_SHORT)
        excess = np.where(is_young, 0.0, state.record.excess(usual.doubt(options.doubt_days)))
        is_worse: BoolArray = excess > options.harm_ratio
        state.record = state.record.count_odds_anew(is_worse)
        paid = paid_ratio(wanted, mean, excess, is_young, options)
        if (is_less := (state.levels == BILL) & (paid < wanted)).any():
            part = part_of_way(paid, self._configured, state.ratio)
            evidence = weights_between(state.tried_evidence, state.evidence, part)
            between = weights_of_both(weights_between(state.tried_weights, state.weights, part), evidence)
            weights = np.where(is_less[:, np.newaxis], between, weights)
            is_unproven = is_less & (odds_of_models(between, prior) < needed_odds(part, options.proof_odds))
            acting = headroom_in(is_unproven, acting_weights(weights, prior, state.levels, options.least_weight))
            paid = np.where(is_unproven, mean, paid)
        if (differs := paid != wanted).any() and state.weights[:, :-1].any():
            sizes = np.where(differs[:, np.newaxis], judged.sizes(paid), sizes)
        stands_in = is_worse & acting[:, :-1].any(axis=1)
        acting = headroom_in(stands_in, acting)
        self._in_force = DecisionInForce(acting, sizes, paid, usual.saved)
        return weights, acting, sizes, paid, stands_in

    def _record(self, number: int) -> None:
        """Add the results of the last decision's blend to the record."""
        if (decision := self._in_force) is None:
            return
        last, state = self.headroom.stretch(number - 1, number), self._state
        paid, rival = last.at(np.array([decision.ratio, state.record.ratio]))
        if decision.weights[:, :-1].any():
            parts = self.experts.family.stretch(number - 1, number).at(decision.sizes)
            paid = sums_of_parts(parts, decision.weights, paid)
        state.record = state.record.after(
            paid,
            rival,
            decision.saved,
            decision.ratio,
            (number - state.began - self._judged).astype(np.float64),
            self._options.record_seconds / self.seconds_between,
        )

    def _keep(self, number: int) -> None:
        """Store each series' state after this decision in `proofs`."""
        series = range(len(self.load[0]))
        self.proofs = tuple(self._state.proof(each, self.experts, self._clock, number) for each in series)

    def _keep_given(self, kept: int) -> None:
        """Keep the given states instead of the computed ones where they are newer."""
        self.proofs = tuple(
            given if number > kept else found
            for given, found, number in zip(self._given, self.proofs, self._resumption.numbers.tolist(), strict=True)
        )

    def begin(self, number: int) -> int:
        """Return the decision after which the period that decision `number` judges begins."""
        return max(0, number - self._judged)

    def begins(self, number: IntArray | int) -> IntArray:
        """Return the decision after which the judged period of each expert begins, shape (…, series, experts)."""
        return np.minimum(np.maximum(np.maximum(0, number - self._judged), self.experts.begins), number)

    def _learn(self, number: int) -> None:
        """Change the weights by each expert's loss since the last decision, relative to headroom of the same cost."""
        state = self._state
        self._record(number)
        if not state.weights[:, :-1].any():
            return
        rate = self._options.rate
        if self._task.budget_ratio is not None:
            losses = self._losses(number, state.weights, state.sizes, state.ratio)
            state.weights = after_losses(state.weights, losses, rate)
            state.evidence = after_gains(state.evidence, losses)
            return
        weights = np.array([state.weights, state.tried_weights])
        sizes = np.array([state.sizes, state.tried_sizes])
        losses = self._losses(number, weights, sizes, np.array([state.ratio, self._configured]))
        state.weights, state.tried_weights = after_losses(weights, losses, rate)
        before = np.array([state.evidence, state.tried_evidence])
        state.evidence, state.tried_evidence = after = after_gains(before, losses)
        if (decision := self._in_force) is not None and (state.record.regained > 0).any():
            part = part_of_way(decision.ratio, self._configured, state.ratio)
            growth = growth_of_odds(*(weights_between(tried, bill, part) for bill, tried in (before, after)))
            state.record = state.record.proven(growth)

    def _losses(self, number: int, weights: FloatArray, sizes: FloatArray, ratio: FloatArray) -> FloatArray:
        """Return experts' losses at these sizes, relative to headroom of `ratio`, at equal cost; 0 without a weight.

        Weights, sizes and losses have the shape (…, series, experts), with headroom last, and ratios (…, series).
        """
        is_early = (
            number - self.experts.newest(number, self._state.began)
            <= self._options.early_seconds / self.seconds_between
        )
        least = least_short_steps_a_day(self.scales[0].fleet.step_seconds, is_early)
        usual = self._usual(number, ratio, least)
        rival = self.headroom.stretch(number - 1, number).at(ratio)
        found = self.experts.family.stretch(number - 1, number).at(sizes)
        losses = np.zeros(weights.shape)
        losses[..., :-1] = np.where(weights[..., :-1] > 0, usual.losses(found - rival[..., np.newaxis, :]), 0.0)
        return losses

    def _usual(self, number: int, ratio: FloatArray, least: FloatArray) -> Usual:
        """Return what headroom of a ratio usually loses in a day before decision `number`."""
        begin = self.begin(number)
        seconds = max(1, number - begin) * self.seconds_between
        worth = worth_of_replica(self.load, begin, number, int(DAY_SECONDS / self.seconds_between))
        return usual_of(self.headroom.stretch(begin, number), ratio, seconds, least, worth)

    def _priors_of_decisions(self) -> FloatArray:
        """Return the weights that experts have before anything is known about them; 0 for experts that take no part.

        The weights have the shape (decisions, series, experts + 1).
        """
        numbers = np.arange(len(self.load))[:, np.newaxis, np.newaxis]
        least = self._options.least_seconds / self.seconds_between
        known = (numbers > self.experts.begins) & (numbers >= self.experts.begins + least)
        bound_ratios = self.experts.bound_ratios(self.begins(numbers), self.scales[0].every)
        takes_part: BoolArray = known & (bound_ratios <= self._options.most_bound_ratio)
        return prior_weights(takes_part, self._options.headroom_prior)

    def _proof_levels(self, weights: FloatArray, prior: FloatArray) -> IntArray:
        """Return, for each series, the cost at which the past proves that models are better than headroom.

        If models are not better, their odds against headroom, divided by their prior odds, have an expectation of 1, so
        that they seldom grow much (Ville's inequality). A proof holds until these odds have fallen as far below 1 as
        they had to grow.

        The weights are those by both counts, at the cost of the bill and at that of the configured headroom.
        """
        odds, tried = odds_of_models(weights, prior)
        return proof_levels(self._state.levels, odds, tried, self._options.proof_odds)

    def _judged_period(self, number: int) -> JudgedPeriod:
        """Return what each expert, and headroom beside it, cost over its judged period."""
        begins = self.begins(number)
        before = self._headroom_costs[begins, np.arange(len(begins))[:, np.newaxis]]
        rival = Period(self.headroom.numbers, self._headroom_costs[number][:, np.newaxis] - before)
        return JudgedPeriod(self.experts.family.stretch(begins, number), rival, begins < number)
