"""From the observed loads of a poll to predictions, by the models that are in use."""

from __future__ import annotations

import logging
import math
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.service.runtime.logs import StateLog
from recommender.decisions.record import PredictedLoad, Prediction
from recommender.predictive.calibration import COUNTED_ERRORS, TRAILING_SECONDS
from recommender.predictive.current import SERIES_AT_ONCE, lacks_history, present_forecasts, with_present
from recommender.predictive.forecast import no_fit
from recommender.predictive.learning import SeriesVerdict
from recommender.predictive.models.headroom import HEADROOM
from recommender.predictive.models.table import MODELS
from recommender.predictive.settings import ModelName
from recommender.running.loads.grid import FEW_SERIES, nearest_index
from recommender.running.loads.tasks import task_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.loads.delays import ControlDelays
    from recommender.predictive.forecast import ForecastTask, Model
    from recommender.running.loads.book import Learned, ModelBook
    from recommender.running.loads.histories import TargetHistory
    from recommender.running.loads.needs import LoadNeed
    from recommender.running.loads.reading import Target

_log = logging.getLogger(__name__)

_PRESENT_ALONE: Final = frozenset({ModelName.REACTIVE, ModelName.HEADROOM})
"""Models that look at the present load and nothing else."""
POOLED: Final = frozenset({ModelName.QUANTILE})
"""Models whose parameters serve every series, also those that they were not fitted to."""
_BY_NAME: Final = {model.name: model for model in MODELS}


@dataclass(frozen=True, slots=True)
class _Values:
    """The forecast of one target."""

    median: float
    upper: float


@dataclass(frozen=True, slots=True)
class _Made:
    """Forecasts that stand until the next step of the grid."""

    need: LoadNeed
    number: int
    learned: Learned | None
    values: dict[str, dict[Target, _Values]]
    """By model."""


class Predictor:
    """Makes predictions. For any number of threads, each recommendation in one at a time."""

    def __init__(self, book: ModelBook) -> None:
        self._book = book
        self._lock = threading.Lock()
        self._made: dict[str, _Made] = {}
        self._states = StateLog(_log)

    def predictions(
        self,
        need: LoadNeed,
        delays: ControlDelays,
        history: TargetHistory | None,
        loads: Mapping[Target, float],
        now: float,
    ) -> Mapping[Target, Prediction]:
        """Return the prediction of each target; `now` is when the loads were observed."""
        learned = self._book.get(need)
        task = learned.task if learned is not None else task_of(need, delays)
        targets = list(loads)
        known = np.zeros(len(targets)) if history is None else history.known_seconds(targets, now)
        chosen = {
            target: _usable(_in_use(need, learned, target), float(seconds), learned)
            for target, seconds in zip(targets, known, strict=True)
        }
        found: dict[Target, Prediction] = {}
        for name in sorted({each.model for each in chosen.values()}):
            some = [target for target in targets if chosen[target].model == name]
            values = self._tried(
                _BY_NAME[name], need, learned, task, history, {each: loads[each] for each in some}, now
            )
            for target in some:
                found[target] = _prediction(chosen[target], values.get(target), loads[target], task, now)
        return found

    def keep(self, names: set[str]) -> None:
        """Forget the forecasts of all but these recommendations."""
        with self._lock:
            self._made = {name: each for name, each in self._made.items() if name in names}

    def _tried(
        self,
        model: Model,
        need: LoadNeed,
        learned: Learned | None,
        task: ForecastTask,
        history: TargetHistory | None,
        loads: Mapping[Target, float],
        now: float,
    ) -> Mapping[Target, _Values]:
        """Return the forecasts by target; none of a model that fails: the present load decides then."""
        key = f"{need.name} {model.name}"
        try:
            found = self._forecast(model, need, learned, task, history, loads, now)
        except Exception as error:  # noqa: BLE001 - the supervisor: a model that fails must not stop the decisions
            message = f"recommendation {need.name}: {model.name} makes no forecast by a fault of the program"
            self._states.failed(key, message, problem=f"{type(error).__name__}: {error}")
            return {}
        self._states.recovered(key, f"recommendation {need.name}: {model.name} makes forecasts again")
        return found

    def _forecast(
        self,
        model: Model,
        need: LoadNeed,
        learned: Learned | None,
        task: ForecastTask,
        history: TargetHistory | None,
        loads: Mapping[Target, float],
        now: float,
    ) -> Mapping[Target, _Values]:
        """Return the forecasts by target. Those that take long are made once in each step of the grid."""
        if model.name in _PRESENT_ALONE or history is None:
            return {}
        if not model.is_heavy and len(history.targets()) <= FEW_SERIES:
            return _made_now(model, learned, task, history, loads, now)
        number = nearest_index(now, history.step_seconds)
        with self._lock:
            made = self._made.get(need.name)
            if made is None or made.need != need or made.number != number or made.learned is not learned:
                made = self._made[need.name] = _Made(need, number, learned, {})
        ready = made.values.get(model.name, {})
        missing = {target: load for target, load in loads.items() if target not in ready}
        if missing:
            ready = made.values[model.name] = {**ready, **_made_now(model, learned, task, history, missing, now)}
        return ready


def _in_use(need: LoadNeed, learned: Learned | None, target: Target) -> SeriesVerdict:
    """Return the model that is in use for a target, whether it can act or not."""
    settings = need.settings
    found = learned.verdict(target) if learned is not None else None
    if found is not None:
        return found
    if settings.model is ModelName.AUTO:
        reason = "auto: the models have not been compared on this load yet"
        return SeriesVerdict(HEADROOM.name, reason, settings.headroom_ratio)
    ratio = 0.0 if settings.model is ModelName.REACTIVE else settings.headroom_ratio
    return SeriesVerdict(str(settings.model), "it is configured", ratio)


def _usable(in_use: SeriesVerdict, known_seconds: float, learned: Learned | None) -> SeriesVerdict:
    """Return what can act: headroom, with the reason, if the model lacks history or its fit."""
    model = _BY_NAME.get(in_use.model)
    if model is None:
        return replace(in_use, model=HEADROOM.name, reason=f"{in_use.model} is not known to this program")
    if lack := lacks_history(model, known_seconds):
        return replace(in_use, model=HEADROOM.name, reason=f"{model.name} {lack}")
    if model.fit is no_fit or (learned is not None and learned.has(model.name)):
        return in_use
    problem = learned.problems.get(model.name) if learned is not None else None
    state = f"could not be fitted: {problem}" if problem else "is being fitted for the first time"
    return replace(in_use, model=HEADROOM.name, reason=f"{model.name} {state}")


def _made_now(
    model: Model,
    learned: Learned | None,
    task: ForecastTask,
    history: TargetHistory,
    loads: Mapping[Target, float],
    now: float,
) -> dict[Target, _Values]:
    """Return the forecasts from the present loads, NaN where there is none."""
    targets, at_once, parameters = list(loads), SERIES_AT_ONCE, None
    if model.fit is not no_fit:
        assert learned is not None, "a model that is in use has been fitted"
        parameters = learned.trials[model.name].parameters
        if model.name not in POOLED:
            # Its parameters are of these series in this order.
            targets, at_once = list(learned.targets), len(learned.targets)
    # A model that needs days of history looks at all of them.
    seconds = None if model.least_history_seconds else _recent_seconds(task, history.step_seconds)
    found: dict[Target, _Values] = {}
    for first in range(0, len(targets), max(1, at_once)):
        some = targets[first : first + at_once]
        present = np.array([loads.get(target, math.nan) for target in some])
        past = with_present(history.history(some, now, seconds), present)
        forecasts = present_forecasts(model, parameters, past, task)
        for target, median, upper in zip(some, forecasts.median[:, 0], forecasts.upper[:, 0], strict=True):
            found[target] = _Values(float(median), float(upper))
    return found


def _recent_seconds(task: ForecastTask, step_seconds: float) -> float:
    """Return how far back a model looks that is not fitted: to its recent errors, and the samples of the first."""
    ahead = task.lead_seconds + task.window_seconds + 10 * step_seconds
    return max(TRAILING_SECONDS, 2 * COUNTED_ERRORS * step_seconds) + 5 * ahead


def _prediction(
    in_use: SeriesVerdict, values: _Values | None, load: float, task: ForecastTask, now: float
) -> Prediction:
    """Return the prediction; plain headroom where the model has no forecast.

    It is never less than the present load: an HPA that has no other metric would remove pods that are in use.
    """
    model, reason = in_use.model, in_use.reason
    if values is None or not math.isfinite(values.upper):
        ratio = in_use.headroom_ratio
        if model not in _PRESENT_ALONE:
            model, reason, ratio = HEADROOM.name, f"{model} has no forecast from the last samples", task.headroom_ratio
        values = _Values(load, load * (1 + ratio))
    upper = max(load, values.upper)
    median = min(max(0.0, values.median), upper) if math.isfinite(values.median) else upper
    quantiles = {"0.5": median, f"{task.quantile:g}": upper}
    return Prediction(
        PredictedLoad(load, upper, now + task.lead_seconds, quantiles),
        model,
        reason,
        in_use.shortage_versus_headroom,
        in_use.last_day,
    )
