"""The load as it is: no forecast, which is what an HPA acts on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.predictive.forecast import Forecasts, Model, no_fit
from recommender.kinds.predictive.models.present import present_load

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import IntArray
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.history import LoadHistory


def _forecast(_parameters: None, history: LoadHistory, origins: IntArray, _task: ForecastTask) -> Forecasts:
    load = present_load(history, origins)
    return Forecasts(load, load)


REACTIVE = Model("reactive", 0.0, no_fit, _forecast)
