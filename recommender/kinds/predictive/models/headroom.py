"""The load as it is and a fixed share of it: what every other model has to beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.predictive.forecast import Forecasts, Model, no_fit
from recommender.kinds.predictive.models.present import limited, present_load

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import IntArray
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.history import LoadHistory


def _forecast(_parameters: None, history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
    load = present_load(history, origins)
    return limited(
        Forecasts(load, load * (1 + task.headroom_ratio)), history, origins, task.max_growth, task.lead_seconds
    )


HEADROOM = Model("headroom", 0.0, no_fit, _forecast)
