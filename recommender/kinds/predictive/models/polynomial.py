"""A parabola through recent samples.

Source: least squares, as in autoscalers for websockets that fit a polynomial of degree 2 to five samples and evaluate
it at now + start-up time. Five noisy samples can say anything at twelve steps ahead, so here it goes through samples of
a longer time, and the forecast is limited to a multiple of the present load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.predictive.forecast import Model, no_fit
from recommender.kinds.predictive.models.curves import CurveOptions, curve_forecasts

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import IntArray
    from recommender.kinds.predictive.forecast import Forecasts, ForecastTask
    from recommender.kinds.predictive.history import LoadHistory

PARABOLA = CurveOptions(degree=2, horizons=4.0, least_samples=8)


def _forecast(_parameters: None, history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
    return curve_forecasts(history, origins, task, PARABOLA)


POLYNOMIAL = Model("polynomial", 0.0, no_fit, _forecast)
