"""The forecast of a record as keys of its JSON item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.texts.record_texts import plain
from recommender.decisions.texts.times import rfc3339

if TYPE_CHECKING:
    from recommender.decisions.loads.prediction import Prediction

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
