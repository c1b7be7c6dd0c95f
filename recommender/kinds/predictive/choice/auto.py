"""The policy `auto`: experts that cost the same, mixed by what each of them would have lost.

At each decision only the past is known: forecasts that were made then, and the load that followed. All experts, plain
headroom among them, are scaled to the same bill. What acts is their mixture, by weights that follow the losses at equal
cost (`weights`): where no model knows more than headroom does, headroom of the same bill is what remains. Backtests
replay a whole trace; in production the trailing days are replayed, and the last step is what acts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.bound import forecast_limits
from recommender.kinds.predictive.choice.blend import Blend, Part
from recommender.kinds.predictive.choice.experts import Expert, expert_of, record_of, usual_of
from recommender.kinds.predictive.choice.records import AutoRun, ChoiceReason, ModelChoice, ModelRecord
from recommender.kinds.predictive.choice.shortage_sums import COST, Family, ShortageScales
from recommender.kinds.predictive.choice.weights import after_losses, shared
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.models.present import growth_limits
from recommender.kinds.predictive.predictive_settings import ModelName
from recommender.kinds.predictive.simulation.bill import Bill
from recommender.kinds.predictive.simulation.frontier import HEADROOM_RATIOS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.forecast import Forecasts, ForecastTask
    from recommender.kinds.predictive.history import LoadHistory
    from recommender.kinds.predictive.simulation.serving import FleetSettings

NOT_JUDGED = frozenset({ModelName.AUTO, ModelName.HEADROOM, ModelName.REACTIVE})
"""What is no model, or the yardstick itself."""


@dataclass(frozen=True, slots=True)
class ChoiceOptions:
    """How models are judged. The defaults are those of production and of backtests."""

    decide_seconds: float = 600.0
    """Decisions are so far apart, at least one step."""
    judge_seconds: float = 7 * DAY_SECONDS
    """What things cost, and what headroom usually loses, is that of so much time."""
    least_seconds: float = DAY_SECONDS / 8
    """A model that has been judged for less time has no weight."""
    headroom_prior: float = 0.5
    """The weight of plain headroom before anything is known; the models share the rest."""
    rate: float = 1.0
    """An expert that loses a day of headroom's usual shortage more than another falls behind it by a factor e."""
    share_a_day: float = 0.05
    """How much of its weight each expert gives to all in a day: what was right long ago may be wrong now."""
    most_headroom_ratio: float = 1.0
    """Without a budget, the bill is at most that of so much headroom."""
    bill_days: float = 1.0
    """Without a budget, the bill follows what the experts ask for within this time: a bill that goes up and down buys
    less than one that stays."""
    bill_days_of_headroom: float = 14.0
    """Likewise while headroom leads: what others ask for is no reason to change then."""
    most_bound_ratio: float = 0.05
    """A model has lost if a larger share of its forecasts stood at their bound."""
    least_weight: float = 0.02
    """Smaller weights do not act: each model that does takes time in every poll."""


DEFAULT_OPTIONS = ChoiceOptions()


def run_auto(
    history: LoadHistory,
    forecasts: Mapping[str, Forecasts],
    task: ForecastTask,
    fleet: FleetSettings,
    options: ChoiceOptions = DEFAULT_OPTIONS,
    limits: FloatArray | None = None,
) -> AutoRun:
    """Return capacity, leading model and decisions for every step of one series.

    `forecasts` holds, by name of the model, the rolling forecasts of the same steps, shape (1, steps), NaN where the
    model took no part. `fleet` is what shortage and cost are simulated with. `limits` are `choice_limits` of a longer
    history, shape (steps,), where there is one.
    """
    load = history.values[0]
    limits = choice_limits(history, task)[0] if limits is None else limits
    every = max(1, round(options.decide_seconds / history.step_seconds))
    scales = ShortageScales(load, limits, fleet, every)
    uppers = {name: found.upper[0] for name, found in forecasts.items() if name not in NOT_JUDGED}
    found = (expert_of(name, upper, task.headroom_ratio, scales) for name, upper in uppers.items())
    bench = _Bench(tuple(each for each in found if each is not None), scales, task, options)
    decisions: list[ModelChoice] = []
    capacity, in_use = np.full(len(load), np.nan), np.empty(len(load), dtype=object)
    for number, step in enumerate(range(0, len(load), every)):
        blend = bench.decide(number)
        some = slice(step, min(step + every, len(load)))
        asked = {part.model: uppers[part.model][some] for part in blend.parts}
        capacity[some] = np.minimum(blend.capacity(load[some], asked, task.headroom_ratio), limits[some])
        in_use[some] = blend.leader
        if not decisions or decisions[-1].model != blend.leader or some.stop == len(load):
            decisions.append(bench.choice(number, step, blend))
    return AutoRun(capacity, tuple(in_use), tuple(decisions))


def choice_limits(history: LoadHistory, task: ForecastTask) -> FloatArray:
    """Return what no choice may exceed, shape (series, steps): the bound of forecasts, and `maxGrowth` if written."""
    limits = forecast_limits(history, task)
    growth = growth_limits(history, np.arange(history.steps, dtype=np.int64), task.max_growth, task.lead_seconds)
    return limits if growth is None else np.minimum(limits, growth)


def capacity_of(load: FloatArray, upper: FloatArray, headroom_ratio: float) -> FloatArray:
    """Return what a model asks for: the larger of load and forecast, plain headroom where it has no forecast."""
    return np.where(np.isnan(upper), load * (1 + headroom_ratio), np.fmax(load, upper))


def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the value below which half of the weight lies, interpolated: one dear expert is no reason to pay more."""
    order = np.argsort(values)
    places = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    return float(np.interp(0.5, places, values[order]))


class _Bench:
    """The experts of one series, and their weights as decisions follow each other."""

    def __init__(
        self, experts: tuple[Expert, ...], scales: ShortageScales, task: ForecastTask, options: ChoiceOptions
    ) -> None:
        self._experts = experts
        self._scales = scales
        self._task = task
        self._options = options
        self._headroom: Family = scales.family(scales.load, HEADROOM_RATIOS)
        self._load = scales.load_replicas()
        self._judged = max(1, int(options.judge_seconds / scales.seconds_between))
        # The last one is plain headroom.
        self._weights = np.append(np.zeros(len(experts)), 1.0)
        self._sizes = np.zeros(len(experts))
        self._ratio = task.headroom_ratio
        self._billed = 0

    def decide(self, number: int) -> Blend:
        """Return what acts from decision `number` on; to be called for one after another."""
        if number:
            self._learn(number)
        self._weights = shared(self._weights, self._prior(number), self._share())
        self._ratio = self._bill_ratio(number)
        self._sizes = np.array([self._size(each, number) for each in self._experts])
        acting = np.where(self._weights < self._options.least_weight, 0.0, self._weights)
        acting = acting / acting.sum()
        parts = (
            Part(each.name, float(weight), float(size))
            for each, weight, size in zip(self._experts, acting[:-1], self._sizes, strict=True)
            if weight > 0
        )
        return Blend(self._ratio, tuple(parts))

    def choice(self, number: int, step: int, blend: Blend) -> ModelChoice:
        """Return the decision with what explains it."""
        records = tuple(
            self._record(each, number, float(weight))
            for each, weight in zip(self._experts, self._weights[:-1], strict=True)
            if number > each.begin
        )
        reason = ChoiceReason.BETTER
        if blend.leader == ModelName.HEADROOM:
            reason = ChoiceReason.NOT_BETTER if blend.parts else ChoiceReason.NOTHING_KNOWN
        return ModelChoice(step, blend, self._bill(number), reason, records)

    def _learn(self, number: int) -> None:
        """Change the weights by what each expert lost since the last decision, beside headroom of the same bill."""
        begin = self._begin(number)
        seconds = (number - begin) * self._scales.seconds_between
        usual = usual_of(self._headroom.stretch(begin, number), self._ratio, seconds)
        rival = self._headroom.stretch(number - 1, number).at(self._ratio)
        losses = np.zeros(len(self._weights))
        for place, each in enumerate(self._experts):
            if self._weights[place] > 0:
                found = each.family.stretch(number - 1, number).at(float(self._sizes[place]))
                losses[place] = usual.loss(found - rival)
        self._weights = after_losses(self._weights, losses, self._options.rate)

    def _prior(self, number: int) -> FloatArray:
        """Return the weights that experts have before anything is known of them; 0 for those that take no part."""
        least = self._options.least_seconds / self._scales.seconds_between
        takes_part = np.array(
            [
                number > each.begin
                and number >= each.begin + least
                and each.bound_ratio(self._begin_of(each, number), number, self._scales.every)
                <= self._options.most_bound_ratio
                for each in self._experts
            ],
            dtype=np.bool_,
        )
        count = int(takes_part.sum())
        if not count:
            return np.append(np.zeros(len(self._experts)), 1.0)
        rest = 1.0 - self._options.headroom_prior
        return np.append(np.where(takes_part, rest / count, 0.0), self._options.headroom_prior)

    def _share(self) -> float:
        return float(-np.expm1(-self._options.share_a_day * self._scales.seconds_between / DAY_SECONDS))

    def _bill_ratio(self, number: int) -> float:
        """Return the headroom that costs as much as the bill allows.

        With a budget, the operator says what it is. Without one, it is what the middle of the experts, by weight, asks
        for to cover the configured quantile, and never less than the configured headroom.
        """
        budget, headroom = self._task.budget_ratio, self._headroom.stretch(self._begin(number), number)
        if budget is not None:
            allowed = (1 + budget) * (self._load[number] - self._load[self._begin(number)])
            return headroom.at_cost(float(allowed)) if number else min(budget, self._task.headroom_ratio)
        weights = self._weights[:-1]
        if not weights.any():
            return self._task.headroom_ratio
        own = [
            self._headroom.stretch(begin, number).at_cost(float(each.family.stretch(begin, number).at(1.0)[COST]))
            for each in self._experts
            for begin in (self._begin_of(each, number),)
        ]
        least = self._task.headroom_ratio
        most = max(least, self._options.most_headroom_ratio)
        asked = min(max(least, _weighted_median(np.array(own), weights)), most)
        self._billed += 1
        slow, fast = self._options.bill_days_of_headroom, self._options.bill_days
        days = fast + (slow - fast) * float(self._weights[-1])
        decisions = max(1.0, days * DAY_SECONDS / self._scales.seconds_between)
        return self._ratio + (asked - self._ratio) / min(self._billed, decisions)

    def _size(self, expert: Expert, number: int) -> float:
        """Return the scale at which a model's room costs what the bill allows; 0 for one that takes no part."""
        begin = self._begin_of(expert, number)
        if begin >= number:
            return 0.0
        cost = float(self._headroom.stretch(begin, number).at(self._ratio)[COST])
        return expert.family.stretch(begin, number).at_cost(cost)

    def _record(self, expert: Expert, number: int, weight: float) -> ModelRecord:
        begin = self._begin_of(expert, number)
        headroom = self._headroom.stretch(begin, number)
        return record_of(expert, weight, self._ratio, headroom, begin, number, self._scales)

    def _bill(self, number: int) -> Bill:
        begin = self._begin(number)
        load = float(self._load[number] - self._load[begin])
        cost = float(self._headroom.stretch(begin, number).at(self._ratio)[COST])
        return Bill(self._ratio, cost / load - 1 if load > 0 else None)

    def _begin(self, number: int) -> int:
        return max(0, number - self._judged)

    def _begin_of(self, expert: Expert, number: int) -> int:
        return min(max(number - self._judged, expert.begin), number)
