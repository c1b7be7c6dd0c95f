"""Seasonal forecasts, each of which is held for the start-up time of pods, until the predicted load is over.

A forecast covers the time after its lead; nearer times were covered by earlier forecasts. A pod that is removed
meanwhile disappears at once and takes the whole start-up time to return, so that it is missing in a short peak after a
valley. The capacity of each forecast is therefore held for the lead, in the same way as the down window holds its
largest size, and its pods serve throughout. This costs more, and pays off if load rises and falls by the clock within a
start-up time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.forecast import Forecasts, Model, no_fit
from recommender.kinds.predictive.models.load_at_origin import limited
from recommender.kinds.predictive.models.seasonal import SEASONAL
from recommender.kinds.predictive.predictive_settings import ModelName

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import IntArray
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.history import LoadHistory


def _forecast(_parameters: None, history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
    """Return the largest of the upper forecasts from the origin and from the steps of one lead before it."""
    back = np.arange(task.lead_steps(history.step_seconds) + 1, dtype=np.int64)
    steps, places = np.unique(np.maximum(origins[:, np.newaxis] - back, 0), return_inverse=True)
    places = places.reshape(len(origins), len(back))
    made = SEASONAL.forecast(None, history, steps, task)
    median, upper = made.median[:, places[:, 0]], made.upper[:, places[:, 0]]
    held = upper
    for ago in range(1, len(back)):
        held = np.fmax(held, made.upper[:, places[:, ago]])
    found = Forecasts(median, np.where(np.isnan(upper), np.nan, held))
    return limited(found, history, origins, task.max_growth, task.lead_seconds)


SEASONAL_HELD = Model(ModelName.SEASONAL_HELD, SEASONAL.least_history_seconds, no_fit, _forecast)
