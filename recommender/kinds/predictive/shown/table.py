"""The forecast of a record as rows of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.texts.record_texts import shown
from recommender.decisions.texts.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.decisions.loads.prediction import Prediction


def prediction_rows(prediction: Prediction | None) -> Iterator[tuple[str, str]]:
    """Yield the forecast, the model with its reason, and the record of all models; nothing if there is no forecast."""
    if prediction is None:
        return
    load = prediction.load
    text = f"{shown(load.now)} now"
    if load.predicted is not None and load.at is not None:
        band = ", ".join(
            f"{'median' if quantile == '0.5' else f'quantile {quantile}'} {shown(value)}"
            for quantile, value in load.quantiles.items()
        )
        text += f", {shown(load.predicted)} expected at {rfc3339(load.at)}" + (f" ({band})" if band else "")
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
