"""Forecasts as Prometheus metrics, as JSON and as text (pure)."""

from __future__ import annotations

import math
from collections import Counter
from statistics import fmean
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.grouping import group_values
from adapter.foundation.web.metric_text import label
from recommender.decisions.loads.prediction import forecast_of
from recommender.decisions.texts.record_texts import figure_text, plain
from recommender.decisions.texts.times import rfc3339
from recommender.outputs.metric_text import labels_of_each_target, recommendation_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from recommender.decisions.loads.prediction import Prediction
    from recommender.decisions.record import Record
    from recommender.outputs.metric_text import Samples

PREDICTION_FAMILIES: Final = {
    "tidewatch_predicted_load": "Predicted load at the time when capacity requested now is ready, by quantile.",
    "tidewatch_observed_load": "Load on which the forecast is based.",
    "tidewatch_model_active": "Targets that use the model: 1 for the model in use, unless the recommendation has many "
    "targets.",
    "tidewatch_model_shortage_versus_headroom": "Recent shortage of each model, divided by that of plain headroom at "
    "the same cost; the mean over the targets.",
    "tidewatch_forecast_cost_ratio": "Replica-hours of the last week above those that the load filled, as a share of "
    "these; the mean over the targets.",
    "tidewatch_forecast_budget_ratio": "What `budget` allows of it; absent without a budget.",
}
"""The help texts of the families, by name."""


def prediction_samples(records: Iterable[Record]) -> dict[str, Samples]:
    """Return the samples of each family; `records` are the records that have a valid value."""
    found = [(record, forecast) for record in records if (forecast := forecast_of(record)) is not None]
    active = Counter((recommendation_label(record), prediction.model) for record, prediction in found)
    observed = {labels: prediction.load.now for record, prediction in found for labels in labels_of_each_target(record)}
    return {
        "tidewatch_predicted_load": _finite(_quantile_samples(found)),
        "tidewatch_observed_load": _finite(observed),
        "tidewatch_model_active": {f"{label('model', model)},{name}": float(n) for (name, model), n in active.items()},
        "tidewatch_model_shortage_versus_headroom": _finite(_shortages(found)),
        "tidewatch_forecast_cost_ratio": _finite(_costs(found)),
        "tidewatch_forecast_budget_ratio": _finite(_budgets(found)),
    }


def _finite(samples: Samples) -> Samples:
    return {labels: float(value) for labels, value in samples.items() if math.isfinite(value)}


def _quantile_samples(found: Iterable[tuple[Record, Prediction]]) -> Samples:
    """Return the quantiles; a target without a forecast has no sample, so that nothing scales down because of it."""
    return {
        f"{label('quantile', quantile)},{labels}": value
        for record, prediction in found
        if prediction.load.predicted is not None
        for labels in labels_of_each_target(record)
        for quantile, value in prediction.load.quantiles.items()
    }


def _shortages(found: Iterable[tuple[Record, Prediction]]) -> Samples:
    ratios = group_values(
        ((record.name, model), ratio)
        for record, prediction in found
        for model, ratio in prediction.shortage_versus_headroom.items()
        if ratio is not None
    )
    return {
        f"{label('model', model)},{label('recommendation', name)}": fmean(values)
        for (name, model), values in ratios.items()
    }


def _costs(found: Iterable[tuple[Record, Prediction]]) -> Samples:
    costs = ((record.name, prediction.cost_above_load_ratio) for record, prediction in found)
    ratios = group_values((name, cost) for name, cost in costs if cost is not None)
    return {label("recommendation", name): fmean(values) for name, values in ratios.items()}


def _budgets(found: Iterable[tuple[Record, Prediction]]) -> Samples:
    return {
        recommendation_label(record): prediction.budget_ratio
        for record, prediction in found
        if prediction.budget_ratio is not None
    }


_KEYS = (
    "load",
    "model",
    "model_reason",
    "shortage_versus_headroom",
    "cost_above_load_ratio",
    "cost_as_headroom_ratio",
    "last_day",
    "timezone",
)


def prediction_keys(prediction: Prediction | None) -> dict[str, object]:
    """Return the keys of an item; all of them are null without a forecast."""
    if prediction is None:
        return dict.fromkeys(_KEYS)
    load = prediction.load
    return {
        "load": {
            "now": plain(load.now),
            "predicted": None if load.predicted is None else plain(load.predicted),
            "at": None if load.at is None else rfc3339(load.at),
            "quantiles": {quantile: plain(value) for quantile, value in load.quantiles.items()},
        },
        "model": prediction.model,
        "model_reason": prediction.model_reason,
        "shortage_versus_headroom": dict(prediction.shortage_versus_headroom),
        "cost_above_load_ratio": prediction.cost_above_load_ratio,
        "cost_as_headroom_ratio": prediction.cost_as_headroom_ratio,
        "last_day": prediction.last_day or None,
        "timezone": prediction.timezone,
    }


def prediction_rows(prediction: Prediction | None) -> Iterator[tuple[str, str]]:
    """Yield the forecast, the model with its reason, and the record of all models; nothing if there is no forecast."""
    if prediction is None:
        return
    load = prediction.load
    text = f"{figure_text(load.now)} now"
    if load.predicted is not None and load.at is not None:
        band = ", ".join(
            f"{'median' if quantile == '0.5' else f'quantile {quantile}'} {figure_text(value)}"
            for quantile, value in load.quantiles.items()
        )
        text += f", {figure_text(load.predicted)} expected at {rfc3339(load.at)}" + (f" ({band})" if band else "")
    yield "load", text
    yield "model", f"{prediction.model}: {prediction.model_reason}" if prediction.model_reason else prediction.model
    if prediction.shortage_versus_headroom:
        ratios = ", ".join(
            f"{model} {'none' if ratio is None else f'{ratio:.2f}'}"
            for model, ratio in prediction.shortage_versus_headroom.items()
        )
        yield "shortage", f"{ratios} (plain headroom at the same cost is 1; less is better)"
    if prediction.cost_above_load_ratio is not None:
        above, headroom = 100 * prediction.cost_above_load_ratio, prediction.cost_as_headroom_ratio
        like = "" if headroom is None else f", as much as {100 * headroom:.0f}% headroom"
        yield "cost", f"{above:.0f}% above the replica-hours that the load fills{like}"
    if prediction.last_day:
        yield "last day", prediction.last_day
    yield "clock", f"{prediction.timezone}: days and weeks of the load repeat by it"
