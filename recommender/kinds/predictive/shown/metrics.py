"""Forecasts as Prometheus metrics: predicted and observed load, the model in use, and its record against headroom."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Final

from adapter.foundation.web.metric_text import label
from recommender.decisions.loads.prediction import forecast_of
from recommender.outputs.metric_text import of_recommendation, of_targets

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    active = Counter((of_recommendation(record), prediction.model) for record, prediction in found)
    observed = {labels: prediction.load.now for record, prediction in found for labels in of_targets(record)}
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
        for labels in of_targets(record)
        for quantile, value in prediction.load.quantiles.items()
    }


def _shortages(found: Iterable[tuple[Record, Prediction]]) -> Samples:
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for record, prediction in found:
        for model, ratio in prediction.shortage_versus_headroom.items():
            if ratio is not None:
                ratios[record.name, model].append(ratio)
    return {
        f"{label('model', model)},{label('recommendation', name)}": fmean(values)
        for (name, model), values in ratios.items()
    }


def _costs(found: Iterable[tuple[Record, Prediction]]) -> Samples:
    ratios: dict[str, list[float]] = defaultdict(list)
    for record, prediction in found:
        if prediction.cost_above_load_ratio is not None:
            ratios[record.name].append(prediction.cost_above_load_ratio)
    return {label("recommendation", name): fmean(values) for name, values in ratios.items()}


def _budgets(found: Iterable[tuple[Record, Prediction]]) -> Samples:
    return {
        of_recommendation(record): prediction.budget_ratio
        for record, prediction in found
        if prediction.budget_ratio is not None
    }
