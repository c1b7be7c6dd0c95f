"""Combines the forecasts of the models in a blend into one prediction (pure)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.decisions.loads.prediction import ForecastBound, PredictedLoad, Prediction
from recommender.kinds.predictive.choice.blend import LEVELS
from recommender.kinds.predictive.predictive_settings import ModelName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.kinds.predictive.choice.blend import Part
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.learning import SeriesVerdict


@dataclass(frozen=True, slots=True)
class ModelForecast:
    """The forecast of one model for one target; NaN where it has none."""

    median: float
    upper: float


@dataclass(frozen=True, slots=True)
class ForecastLimit:
    """The limits of the prediction for a target."""

    load: float
    """The bound of every forecast, and of all of them together."""
    largest: float
    """The largest load of the history."""
    growth: float = math.inf
    """What `maxGrowth` allows."""


def prediction_of(
    verdict: SeriesVerdict,
    said: Mapping[str, ModelForecast | None],
    limit: ForecastLimit | None,
    load: float,
    task: ForecastTask,
    at: float,
) -> Prediction:
    """Return the prediction for one target at the time `at`. Plain headroom replaces a model without a forecast.

    The prediction is never less than the current load: an HPA that has no other metric would remove pods that are in
    use. Neither one model nor the whole blend may exceed the limits.
    """
    model, reason = verdict.model, verdict.reason
    if verdict.blend.parts and not any(_has_forecast(values) for values in said.values()):
        model, reason = ModelName.HEADROOM.value, _without_forecast(verdict)
    most = math.inf if limit is None else limit.load
    asked, raw = _blended_load(verdict, said, load, task, most), _blended_load(verdict, said, load, task, math.inf)
    bounded = min(asked, most)
    # Without the key, only a model that follows a trend is limited, and not the headroom that replaces it.
    is_limited = limit is not None and (task.max_growth is not None or model == verdict.model)
    upper = min(bounded, limit.growth) if limit is not None and is_limited else bounded
    bound = None
    if limit is not None and bounded < raw:
        cut = tuple(sorted(name for name, each in said.items() if each is not None and each.upper > most))
        bound = ForecastBound(raw, limit.largest, task.max_over_history, cut or (model,))
    leading = said.get(verdict.model)
    median = leading.median if leading is not None and math.isfinite(leading.median) else load
    quantiles = {"0.5": min(max(0.0, median), upper), f"{task.quantile:g}": upper}
    return Prediction(
        PredictedLoad(load, upper, at, quantiles),
        model,
        reason,
        verdict.shortage_versus_headroom,
        verdict.last_day,
        bound,
        None if verdict.bill is None else verdict.bill.above_load_ratio,
        None if verdict.bill is None else verdict.bill.as_headroom_ratio,
        task.budget_ratio,
        task.clock.timezone,
        bounded if upper < bounded else None,
    )


def _without_forecast(verdict: SeriesVerdict) -> str:
    if verdict.model == ModelName.TREND:
        return f"{verdict.reason}; trend sees no evident rise"
    return f"{verdict.model} has no forecast from the last samples"


def _blended_load(
    verdict: SeriesVerdict, said: Mapping[str, ModelForecast | None], load: float, task: ForecastTask, most: float
) -> float:
    """Return the load with the headroom of the blend, in which no model counts with more than `most`.

    This is the same sum as that of `Blend.capacity`, for one moment.
    """
    blend = verdict.blend
    room = blend.headroom_weight * blend.headroom_ratio * load
    for part in blend.parts:
        values = said.get(part.model)
        room += part.weight * _scaled_room(part, values, load, task, most)
    return load + room


def _scaled_room(part: Part, values: ModelForecast | None, load: float, task: ForecastTask, most: float) -> float:
    """Return `scaled_room` of a part for one moment. With arrays, thousands of calls in a poll would take a second."""
    if values is None or not _has_forecast(values):
        return part.scale * task.headroom_ratio * load
    upper = min(values.upper, most)
    if part.model in LEVELS:
        return max(0.0, part.scale * upper - load)
    return part.scale * max(0.0, upper - load)


def _has_forecast(values: ModelForecast | None) -> bool:
    return values is not None and math.isfinite(values.upper)
