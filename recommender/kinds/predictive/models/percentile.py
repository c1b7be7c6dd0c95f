"""A quantile of the last week, whatever the time of day; nothing costs less if the load is noise around a level.

Source: the percentile estimators of vertical autoscalers, which use a level and ignore the shape of the load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.forecast import Forecasts, Model, no_fit
from recommender.kinds.predictive.history import DAY_SECONDS, WEEK_SECONDS
from recommender.kinds.predictive.models.features import HOUR_SECONDS, in_steps
from recommender.kinds.predictive.models.load_at_origin import limit_growth
from recommender.kinds.predictive.predictive_settings import ModelName

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import IntArray
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.history import LoadHistory


def _forecast(_parameters: None, history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
    shape = (len(history.values), len(origins))
    median, upper = np.full(shape, np.nan), np.full(shape, np.nan)
    week, every = in_steps(WEEK_SECONDS, history.step_seconds), in_steps(HOUR_SECONDS, history.step_seconds)
    # It is computed once per clock hour, so that it does not depend on where a history begins.
    phase = round(history.start_seconds / history.step_seconds)
    hours = (origins + phase) // every * every - phase
    for hour in np.unique(hours):
        seen = history.values[:, max(0, hour - week) : max(0, hour)]
        some = np.flatnonzero(hours == hour)
        for series in np.flatnonzero((~np.isnan(seen)).any(axis=1)):
            known = seen[series][~np.isnan(seen[series])]
            median[series, some], upper[series, some] = np.quantile(known, (0.5, task.quantile))
    return limit_growth(Forecasts(median, upper), history, origins, task.max_growth, task.lead_seconds)


PERCENTILE = Model(ModelName.PERCENTILE, DAY_SECONDS, no_fit, _forecast)
