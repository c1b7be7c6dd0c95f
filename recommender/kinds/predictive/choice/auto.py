"""The policy `auto`: experts of equal cost, mixed by their past losses.

Each decision uses only the past: the forecasts that were made and the load that followed them. All experts, plain
headroom among them, are scaled to the same bill. The policy requests their weighted mean, with weights that follow the
losses at equal cost (`weights`). If no model is better than headroom, only headroom of the same bill remains. Backtests
replay a whole trace; in production the trailing days are replayed, and the last step acts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.choice.blend import Blend, Part, scaled_room
from recommender.kinds.predictive.choice.expert_mixture import ExpertMixture
from recommender.kinds.predictive.choice.experts import missing_share
from recommender.kinds.predictive.choice.options import DEFAULT_OPTIONS, ChoiceOptions
from recommender.kinds.predictive.choice.records import AutoRun, ChoiceReason, ModelChoice, ModelRecord
from recommender.kinds.predictive.choice.shortage_sums import COST, TAU, Period, ShortageScales
from recommender.kinds.predictive.models.load_at_origin import growth_limits
from recommender.kinds.predictive.predictive_settings import ModelName, configured_growth
from recommender.kinds.predictive.simulation.bill import Bill
from recommender.kinds.predictive.upper_bound import forecast_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.choice.decided import DecidedWeights
    from recommender.kinds.predictive.choice.series_proof import SeriesProof
    from recommender.kinds.predictive.forecast import Forecasts, ForecastTask
    from recommender.kinds.predictive.history import LoadHistory
    from recommender.kinds.predictive.simulation.serving import FleetSettings

NOT_JUDGED = frozenset({ModelName.AUTO, ModelName.HEADROOM, ModelName.REACTIVE})
"""Choices that are not judged: `auto`, `headroom`, which is the baseline, and `reactive`, which forecasts nothing."""


def run_auto(
    history: LoadHistory, forecasts: Mapping[str, Forecasts], task: ForecastTask, fleet: FleetSettings
) -> AutoRun:
    """Return capacity, leading model and decisions for every step of one series.

    `forecasts` maps each model's name to its rolling forecasts of the same steps, of shape (1, steps), with NaN where
    the model took no part. Shortage and cost are simulated with `fleet`.
    """
    played = PlayedChoices(history, forecasts, task, fleet)
    leaders = played.leaders[:, 0]
    changes = np.flatnonzero(np.diff(leaders, prepend=-1))
    decisions = played.choices(0, sorted({*changes.tolist(), len(leaders) - 1}))
    names = np.array([*played.mixture.experts.names, ModelName.HEADROOM.value], dtype=object)
    in_use = names[leaders][played.numbers()]
    return AutoRun(played.capacity[0], tuple(in_use), tuple(decisions))


class PlayedChoices:
    """The capacity that `auto` would have requested for several series, each with only its own past."""

    def __init__(
        self,
        history: LoadHistory,
        forecasts: Mapping[str, Forecasts],
        task: ForecastTask,
        fleet: FleetSettings,
        limits: FloatArray | None = None,
        options: ChoiceOptions = DEFAULT_OPTIONS,
        proofs: Sequence[SeriesProof | None] = (),
    ) -> None:
        """`limits` are the `choice_limits` of a longer history, shape (series, steps); by default, those of `history`.

        `proofs` are the states that earlier decisions left for each series; without them, every series begins anew.
        """
        self._limits = choice_limits(history, task) if limits is None else limits
        self._history = history
        self.every = max(1, round(options.decide_seconds / history.step_seconds))
        # Decisions are made at the same times wherever a history begins.
        begin = round(history.start_seconds / history.step_seconds)
        self.first = min(-begin % self.every, history.steps - 1)
        uppers = {name: found.upper for name, found in forecasts.items() if name not in NOT_JUDGED}
        scales = [
            ShortageScales(load, limit, fleet, self.every, self.first)
            for load, limit in zip(history.values, self._limits, strict=True)
        ]
        self.mixture = ExpertMixture(uppers, scales, task, options, begin + self.first, proofs)
        self.decided: DecidedWeights = self.mixture.decide()
        self._acting = self.decided.acting
        # If weights are equal, headroom's comes first.
        self.leaders: IntArray = np.roll(self._acting, 1, axis=-1).argmax(axis=-1) - 1
        self.leaders %= self._acting.shape[-1]
        self.capacity = self._capacity(uppers, task.headroom_ratio)

    def numbers(self) -> IntArray:
        """Return the number of the decision in effect at each step; the first one also counts before it was made."""
        return np.maximum(0, (np.arange(self._history.steps) - self.first) // self.every)

    def choices(self, series: int, numbers: Iterable[int]) -> list[ModelChoice]:
        """Return the decisions of a series with these numbers, with their explanations."""
        return [
            _choice_at(
                self.mixture,
                self.decided,
                _ChoiceMoment(series, number, self.first + number * self.every, self._blend(series, number)),
            )
            for number in numbers
        ]

    def last_choice(self, series: int) -> ModelChoice:
        """Return the latest decision on a series."""
        (found,) = self.choices(series, [len(self.leaders) - 1])
        return found

    def _blend(self, series: int, number: int) -> Blend:
        weights, sizes = self._acting[number, series, :-1].tolist(), self.decided.sizes[number, series].tolist()
        parts = (
            Part(name, weight, size)
            for name, weight, size in zip(self.mixture.experts.names, weights, sizes, strict=True)
            if weight > 0
        )
        return Blend(float(self.decided.ratios[number, series]), tuple(parts))

    def _capacity(self, uppers: Mapping[str, FloatArray], missing_ratio: float) -> FloatArray:
        """Return the load plus the room of all acting experts, within the limits; the same sum as `Blend.capacity`."""
        load, numbers = self._history.values, self.numbers()

        def by_step(values: FloatArray) -> FloatArray:
            return values[numbers].T

        room = by_step(self._acting[..., -1] * self.decided.ratios) * load
        for place, name in enumerate(self.mixture.experts.names):
            weights, sizes = by_step(self._acting[..., place]), by_step(self.decided.sizes[..., place])
            room = room + weights * scaled_room(name, sizes, load, uppers[name], missing_ratio)
        return np.asarray(np.minimum(load + room, self._limits))


def choice_limits(history: LoadHistory, task: ForecastTask) -> FloatArray:
    """Return the limit of all choices, shape (series, steps): the bound of forecasts, and `maxGrowth` if configured."""
    limits = forecast_limits(history, task)
    growth = growth_limits(history, np.arange(history.steps, dtype=np.int64), task.max_growth, task.lead_seconds)
    return limits if growth is None else np.minimum(limits, growth)


def capacity_of(load: FloatArray, upper: FloatArray, headroom_ratio: float) -> FloatArray:
    """Return the capacity that a model requests: the larger of load and forecast; plain headroom without a forecast."""
    return np.where(np.isnan(upper), load * (1 + headroom_ratio), np.fmax(load, upper))


def configured_capacity(model: str, history: LoadHistory, upper: FloatArray, task: ForecastTask) -> FloatArray:
    """Return the capacity that `run` requests with this model in the configuration, shape (series, steps).

    `upper` are its forecasts. The default of `maxGrowth` does not limit the headroom that replaces a missing one.
    """
    ratio = 0.0 if model == ModelName.REACTIVE else task.headroom_ratio
    capacity = capacity_of(history.values, upper, ratio)
    growth = configured_growth(model, task.max_growth)
    limits = growth_limits(history, np.arange(history.steps, dtype=np.int64), growth, task.lead_seconds)
    if limits is None:
        return capacity
    is_limited = ~np.isnan(upper) | (task.max_growth is not None)
    return np.where(is_limited, np.minimum(capacity, limits), capacity)


_DOUBT_STEPS: Final = 2.0
"""The short steps that are added to both sides of a shown ratio, since a handful of short steps proves nothing."""


@dataclass(frozen=True, slots=True)
class _ChoiceMoment:
    """A decision on one series."""

    series: int
    number: int
    step: int
    blend: Blend


def _choice_at(mixture: ExpertMixture, decided: DecidedWeights, moment: _ChoiceMoment) -> ModelChoice:
    """Return the decision with the records of all models that have been judged."""
    begins = mixture.experts.begins[moment.series]
    records = tuple(
        _record(mixture, decided, moment, place) for place, begin in enumerate(begins.tolist()) if moment.number > begin
    )
    reason = ChoiceReason.BETTER
    if not decided.weights[moment.number, moment.series, :-1].any():
        reason = ChoiceReason.NOTHING_KNOWN
    elif decided.stands_in[moment.number, moment.series]:
        reason = ChoiceReason.RECORD_IS_WORSE
    elif moment.blend.leader == ModelName.HEADROOM:
        reason = ChoiceReason.NOT_BETTER
    return ModelChoice(moment.step, moment.blend, _bill(mixture, moment), reason, records)


def _record(mixture: ExpertMixture, decided: DecidedWeights, moment: _ChoiceMoment, place: int) -> ModelRecord:
    """Return how a model compares with headroom at the cost of the bill, over the time for which it is judged."""
    series, number = moment.series, moment.number
    begins = mixture.begins(number)
    begin = int(begins[series, place])
    family = mixture.experts.family
    stretch = Period(family.numbers, family.sums[number, series, place] - family.sums[begin, series, place])
    headroom = _headroom(mixture, series, begin, number)
    rival = headroom.at(moment.blend.headroom_ratio)
    found = stretch.at(stretch.at_cost(rival[COST]))
    # A short step lacks this share of its needs, in the experience of headroom.
    doubt = _DOUBT_STEPS * np.array([1.0, float(missing_share(rival))])
    versus = (found[TAU:] + doubt) / (rival[TAU:] + doubt)
    return ModelRecord(
        name=mixture.experts.names[place],
        judged_seconds=(number - begin) * mixture.seconds_between,
        weight=float(decided.weights[number, series, place]),
        cost_as_headroom_ratio=float(headroom.at_cost(stretch.at(1.0)[COST])),
        tau_under_versus_headroom=float(versus[0]),
        theta_under_versus_headroom=float(versus[1]),
    )


def _bill(mixture: ExpertMixture, moment: _ChoiceMoment) -> Bill:
    begin = mixture.begin(moment.number)
    load = float(mixture.load[moment.number, moment.series] - mixture.load[begin, moment.series])
    ratio = moment.blend.headroom_ratio
    cost = float(_headroom(mixture, moment.series, begin, moment.number).at(ratio)[COST])
    return Bill(ratio, cost / load - 1 if load > 0 else None)


def _headroom(mixture: ExpertMixture, series: int, begin: int, number: int) -> Period:
    sums = mixture.headroom.sums
    return Period(mixture.headroom.numbers, sums[number, series] - sums[begin, series])
