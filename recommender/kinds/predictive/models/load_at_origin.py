"""The load at the origin: as a forecast of its own, with or without headroom, and as a bound for other forecasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.forecast import Forecasts, Model, no_fit
from recommender.kinds.predictive.predictive_settings import TREND_GROWTH

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.history import LoadHistory

LEVEL_SECONDS = 300.0


def current_load(history: LoadHistory, origins: IntArray) -> FloatArray:
    """Return the load at each origin, shape (series, origins); NaN where it is unknown."""
    return np.take(history.values, origins, axis=1)


def growth_limits(
    history: LoadHistory, origins: IntArray, growth: float | None, lead_seconds: float
) -> FloatArray | None:
    """Return the largest forecast that is believed at each origin; None without a limit.

    It is a multiple of the load at the origin or of the recent mean, whichever is larger, so that a single quiet step
    does not keep a forecast down. The mean is that of the last five minutes, or of the length of the lead if that is
    shorter. Where the load at the origin is unknown, so is the limit.
    """
    if growth is None:
        return None
    load = current_load(history, origins)
    total, count = np.zeros(load.shape), np.zeros(load.shape)
    for back in range(max(1, int(min(LEVEL_SECONDS, lead_seconds) / history.step_seconds))):
        recent = current_load(history, np.maximum(origins - back, 0))
        known = ~np.isnan(recent) & (origins >= back)
        total += np.where(known, recent, 0.0)
        count += known
    return growth * np.maximum(load, total / np.maximum(count, 1.0))


def limited_points(
    points: FloatArray, history: LoadHistory, origins: IntArray, growth: float | None, lead_seconds: float
) -> FloatArray:
    """Return the forecasts between 0 and the growth limit; NaN where the load at the origin is unknown."""
    known = np.where(np.isnan(current_load(history, origins)), np.nan, np.maximum(points, 0.0))
    limits = growth_limits(history, origins, growth, lead_seconds)
    return known if limits is None else np.minimum(known, limits)


def limit_growth(
    forecasts: Forecasts, history: LoadHistory, origins: IntArray, growth: float | None, lead_seconds: float
) -> Forecasts:
    """Return the forecasts with both median and upper forecast capped at the growth limit.

    If the load at the origin is unknown, the model does not act, although the last minutes may be known.
    """
    limits = growth_limits(history, origins, growth, lead_seconds)
    if limits is None:
        limits = np.where(np.isnan(current_load(history, origins)), np.nan, np.inf)
    return Forecasts(np.minimum(forecasts.median, limits), np.minimum(forecasts.upper, limits))


def trend_growth(task: ForecastTask) -> float:
    """Return the growth limit of a model that extrapolates a trend.

    It bounds the extrapolation. Models with a season do not apply it to the room for their errors, because that room is
    measured, and noise of a small load is larger than any trend. A limit in the configuration bounds both.
    """
    return TREND_GROWTH if task.max_growth is None else task.max_growth


def _reactive(_parameters: None, history: LoadHistory, origins: IntArray, _task: ForecastTask) -> Forecasts:
    load = current_load(history, origins)
    return Forecasts(load, load)


def _headroom(_parameters: None, history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
    load = current_load(history, origins)
    return limit_growth(
        Forecasts(load, load * (1 + task.headroom_ratio)), history, origins, task.max_growth, task.lead_seconds
    )


REACTIVE = Model("reactive", 0.0, no_fit, _reactive)
"""The model without a forecast, like an HPA."""
HEADROOM = Model("headroom", 0.0, no_fit, _headroom)
"""The model that every other model must beat."""
