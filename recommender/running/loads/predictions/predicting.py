"""Turns the observed loads of a poll into predictions, by the models that are in use."""

from __future__ import annotations

import logging
import math
import threading
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.service.runtime.logs import StateLog
from recommender.kinds.predictive.calibration import COUNTED_ERRORS, TRAILING_SECONDS
from recommender.kinds.predictive.choice.options import BEGINNER
from recommender.kinds.predictive.current_forecast import SERIES_AT_ONCE, current_forecasts, lacks_history, with_current
from recommender.kinds.predictive.forecast import no_fit
from recommender.kinds.predictive.learning import SeriesVerdict, verdict_on
from recommender.kinds.predictive.models.table import MODELS
from recommender.kinds.predictive.predictive_settings import ModelName
from recommender.running.loads.histories.sample_times import FEW_SERIES, nearest_index
from recommender.running.loads.learned.forecast_tasks import task_of
from recommender.running.loads.predictions.blending import ModelForecast, prediction_of
from recommender.running.loads.predictions.forecast_limits import KnownLoads, limits_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.loads.control_delays import ControlDelays
    from recommender.decisions.loads.prediction import Prediction
    from recommender.kinds.predictive.forecast import ForecastTask, Model
    from recommender.running.loads.histories.load_histories import TargetHistory
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.learned.model_choices import Learned, LearnedModels
    from recommender.running.loads.load_needs import LoadNeed

_log = logging.getLogger(__name__)

POOLED: Final = frozenset({ModelName.QUANTILE, ModelName.BOOSTED, ModelName.BOOSTED_CONFORMAL})
"""Models whose parameters serve every series, even those that they were not fitted to."""
FITTED_ALONE: Final = frozenset({ModelName.HOLT_WINTERS, ModelName.STATE_SPACE})
"""Models with parameters of their own for each series."""
_BY_NAME: Final = {model.name: model for model in MODELS}


@dataclass(frozen=True, slots=True)
class _Made:
    """The forecasts of a model for a recommendation, each of which is valid for a step of the grid."""

    need: LoadNeed
    task: ForecastTask
    parameters: object
    """Parameters of the model's fit. If they or the task change, all forecasts are made again."""
    values: dict[Target, tuple[int, ModelForecast]]
    """Values by target, with the number of the step."""


@dataclass(frozen=True, slots=True)
class _Basis:
    """What the forecasts of one poll are made from."""

    need: LoadNeed
    learned: Learned | None
    task: ForecastTask
    history: TargetHistory | None
    now: float
    """When the loads were observed."""


class Predictor:
    """Makes predictions. For any number of threads, but each recommendation by one thread at a time."""

    def __init__(self, learned_models: LearnedModels) -> None:
        self._learned_models = learned_models
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str], _Made] = {}
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
        learned = self._learned_models.get(need)
        task = learned.task if learned is not None else task_of(need, delays)
        basis = _Basis(need, learned, task, history, now)
        targets = list(loads)
        known = np.zeros(len(targets)) if history is None else history.known_seconds(targets, now)
        chosen = {
            target: _usable(_in_use(need, learned, target), float(seconds), learned, target)
            for target, seconds in zip(targets, known, strict=True)
        }
        wanted: dict[str, dict[Target, float]] = defaultdict(dict)
        for target, verdict in chosen.items():
            for part in verdict.blend.parts:
                wanted[part.model][target] = loads[target]
        said = {
            name: self._forecasts_unless_failed(_BY_NAME[name], basis, some) for name, some in sorted(wanted.items())
        }
        limits = limits_of(need.settings, task, KnownLoads(history, now, loads), said, chosen)
        return {
            target: prediction_of(
                chosen[target],
                {part.model: said[part.model].get(target) for part in chosen[target].blend.parts},
                limits.get(target),
                loads[target],
                task,
                now + task.lead_seconds / need.settings.stretch,
            )
            for target in targets
        }

    def keep(self, names: set[str]) -> None:
        """Forget the forecasts of all but these recommendations."""
        with self._lock:
            self._made = {key: each for key, each in self._made.items() if key[0] in names}

    def _forecasts_unless_failed(
        self, model: Model, basis: _Basis, loads: Mapping[Target, float]
    ) -> Mapping[Target, ModelForecast]:
        """Return the forecasts by target; none if the model fails, so that the current load decides."""
        need = basis.need
        key = f"{need.name} {model.name}"
        try:
            found = self._forecast(model, basis, loads)
        except Exception as error:  # noqa: BLE001 - the supervisor: a model that fails must not stop the decisions
            message = f"recommendation {need.name}: {model.name} makes no forecast because of an internal error"
            self._states.failed(key, message, problem=f"{type(error).__name__}: {error}")
            return {}
        self._states.recovered(key, f"recommendation {need.name}: {model.name} makes forecasts again")
        return found

    def _forecast(self, model: Model, basis: _Basis, loads: Mapping[Target, float]) -> Mapping[Target, ModelForecast]:
        """Return the forecasts by target. Slow forecasts are made once in each step of the grid."""
        need, task, history, learned = basis.need, basis.task, basis.history, basis.learned
        if history is None:
            return {}
        if not model.is_heavy and len(history.targets()) <= FEW_SERIES:
            return _made_now(model, basis, history, loads)
        number = nearest_index(basis.now, history.step_seconds)
        parameters = None if model.fit is no_fit or learned is None else learned.parameters(model.name)
        with self._lock:
            made = self._made.get((need.name, model.name))
            if made is None or made.parameters is not parameters or (made.need, made.task) != (need, task):
                made = self._made[need.name, model.name] = _Made(need, task, parameters, {})
        for target in [target for target in made.values if target not in loads]:
            del made.values[target]
        polls = history.step_seconds / need.poll_interval_seconds
        due = _due(made.values, loads, number, polls if len(loads) > FEW_SERIES else 1.0)
        if due:
            found = _made_now(model, basis, history, {target: loads[target] for target in due})
            made.values.update({target: (number, found[target]) for target in due})
        return {target: made.values[target][1] for target in loads}


def _due(
    values: Mapping[Target, tuple[int, ModelForecast]], loads: Mapping[Target, float], number: int, polls: float
) -> list[Target]:
    """Return the targets whose forecasts are made now: those without one, and the oldest of former steps.

    With many targets, they are spread over the polls of a step, so that no poll must make all of them.
    """
    missing = [target for target in loads if target not in values]
    former = [target for target in loads if target in values and values[target][0] < number]
    late = sum(values[target][0] < number - 1 for target in former)
    share = max(late, math.ceil(len(loads) / max(1.0, polls)))
    return missing + sorted(former, key=lambda target: values[target][0])[:share]


def _in_use(need: LoadNeed, learned: Learned | None, target: Target) -> SeriesVerdict:
    """Return the choice for a target, whether it can act or not."""
    settings = need.settings
    found = learned.verdicts.get(target) if learned is not None else None
    if found is not None:
        return found
    if settings.model is ModelName.AUTO:
        reason = "auto: the models have not been compared on this load yet"
        # A choice that follows a rise has no record of its cost, so no budget would hold.
        beginner = BEGINNER if settings.budget_ratio is None else ModelName.HEADROOM.value
        return verdict_on(beginner, reason, settings.headroom_ratio)
    ratio = 0.0 if settings.model is ModelName.REACTIVE else settings.headroom_ratio
    return verdict_on(str(settings.model), "it is configured", ratio)


def _usable(in_use: SeriesVerdict, known_seconds: float, learned: Learned | None, target: Target) -> SeriesVerdict:
    """Return the part of the choice that can act now, and why that is not the whole choice.

    Headroom replaces a model without enough history. A model without a fit, as after a restart, is replaced by the
    other models of the blend, which have also been better than headroom of the same cost, or by headroom if none of
    them can act.
    """
    lacking = {part.model: _lacks(part.model, known_seconds, learned, target) for part in in_use.blend.parts}
    if not any(lacking.values()):
        return in_use
    parts = tuple(part for part in in_use.blend.parts if not lacking[part.model])
    able = sum(part.weight for part in parts)
    unfitted = sum(
        part.weight for part in in_use.blend.parts if lacking[part.model] and _has_history(part.model, known_seconds)
    )
    if able:
        parts = tuple(replace(part, weight=part.weight * (1 + unfitted / able)) for part in parts)
    blend = replace(in_use.blend, parts=parts)
    why = lacking.get(in_use.model) or next(lack for lack in lacking.values() if lack)
    return replace(in_use, model=blend.leader, reason=why, blend=blend)


def _has_history(name: str, known_seconds: float) -> bool:
    return name in _BY_NAME and not lacks_history(_BY_NAME[name], known_seconds)


def _lacks(name: str, known_seconds: float, learned: Learned | None, target: Target) -> str:
    """Return why a model cannot act on a target; empty if it can."""
    model = _BY_NAME.get(name)
    if model is None:
        return f"{name} is not known to this program"
    if lack := lacks_history(model, known_seconds):
        return f"{name} {lack}"
    if model.fit is no_fit:
        return ""
    if learned is not None and learned.has(name):
        # A target that has appeared since the fit has no parameters in it.
        is_fitted = name in POOLED or target in learned.targets
        return "" if is_fitted else f"{name} is fitted to this target with the next fit"
    problem = learned.problems.get(name) if learned is not None else None
    state = f"could not be fitted: {problem}" if problem else "is being fitted for the first time"
    return f"{name} {state}"


def _made_now(
    model: Model, basis: _Basis, history: TargetHistory, loads: Mapping[Target, float]
) -> dict[Target, ModelForecast]:
    """Return the forecasts from the current loads; NaN where a model has no forecast."""
    learned, task = basis.learned, basis.task
    targets, at_once, parameters = list(loads), SERIES_AT_ONCE, None
    if model.fit is not no_fit:
        assert learned is not None, "a model that is in use has been fitted"
        parameters = learned.parameters(model.name)
        if model.name not in POOLED:
            # Its parameters belong to these series in this order.
            targets, at_once = list(learned.targets), len(learned.targets)
    # A model that needs days of history uses all of them.
    step_seconds = history.step_seconds * history.need.settings.stretch
    seconds = None if model.least_history_seconds else _recent_seconds(task, step_seconds)
    found: dict[Target, ModelForecast] = {}
    for first in range(0, len(targets), max(1, at_once)):
        some = targets[first : first + at_once]
        present = np.array([loads.get(target, math.nan) for target in some])
        past = with_current(history.history(some, basis.now, seconds), present)
        forecasts = current_forecasts(model, parameters, past, task)
        for target, median, upper in zip(some, forecasts.median[:, 0], forecasts.upper[:, 0], strict=True):
            found[target] = ModelForecast(float(median), float(upper))
    return found


def _recent_seconds(task: ForecastTask, step_seconds: float) -> float:
    """Return how far back a model without a fit looks: to its recent errors, and the samples before the first error."""
    ahead = task.lead_seconds + task.window_seconds + 10 * step_seconds
    return max(TRAILING_SECONDS, 2 * COUNTED_ERRORS * step_seconds) + 5 * ahead
