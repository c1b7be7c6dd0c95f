"""A line through recent samples: least squares, as PHPA's `Linear`, but of the load instead of replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.predictive.forecast import Model, no_fit
from recommender.kinds.predictive.models.curves import CurveOptions, curve_forecasts

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import IntArray
    from recommender.kinds.predictive.forecast import Forecasts, ForecastTask
    from recommender.kinds.predictive.history import LoadHistory

LINE = CurveOptions(degree=1, horizons=2.0, least_samples=5)


def _forecast(_parameters: None, history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
    return curve_forecasts(history, origins, task, LINE)


LINEAR = Model("linear", 0.0, no_fit, _forecast)
