"""One quantile of the future load by gradient boosting on the whole history, without calibration afterwards.

The fitted value is the logarithm of the target relative to the current level, on features without a unit (`features`).
`quantile` sees two weeks and calibrates itself on days that it has not seen; this model sees everything and trusts its
fit, so that it requests less if the past is long and regular. The choice among models finds out which of the two is
right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.forecast import Forecasts, Model
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory
from recommender.kinds.predictive.models.boosting import BoostingOptions, Forest, fit_forest, known_rows
from recommender.kinds.predictive.models.conformal import conformal_forecasts
from recommender.kinds.predictive.models.features import rows_to_predict
from recommender.kinds.predictive.models.load_at_origin import current_load, limit_growth
from recommender.kinds.predictive.predictive_settings import ModelName

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import IntArray
    from recommender.kinds.predictive.forecast import ForecastTask

LEAST_HISTORY_SECONDS = 2 * DAY_SECONDS
MOST_ROWS = 20_000
FEWEST_ROWS = 100
OPTIONS = BoostingOptions(rounds=100, learning_rate=0.1, leaves=15)


def fit(history: LoadHistory, task: ForecastTask) -> Forest | None:
    """Fit on all known targets, evenly spread over the history. Returns None if there are too few."""
    rows = known_rows(history, task, history.span_seconds, MOST_ROWS)
    if len(rows.answers) < FEWEST_ROWS:
        return None
    return fit_forest(rows.features, rows.answers, task.quantile, OPTIONS)


def forecast(parameters: Forest | None, history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
    """Return the fitted quantile as the upper forecast, and the smaller of it and the current load as the median."""
    upper = np.full((len(history.values), len(origins)), np.nan)
    if parameters is None or not len(origins):
        return Forecasts(upper, upper)
    for some, level, rows in rows_to_predict(history, origins, task):
        upper[some] = level.load_of(parameters.predict(rows).reshape(level.load.shape))
    found = Forecasts(np.minimum(current_load(history, origins), upper), upper)
    return limit_growth(found, history, origins, task.max_growth, task.lead_seconds)


def _with_conformal(
    parameters: Forest | None, history: LoadHistory, origins: IntArray, task: ForecastTask
) -> Forecasts:
    """Return the geometric mean of this forecast and `conformal`'s: a rise that only one foresees counts half."""
    fitted, rule = forecast(parameters, history, origins, task), conformal_forecasts(None, history, origins, task)
    upper = np.sqrt(fitted.upper) * np.sqrt(rule.upper)
    return Forecasts(np.minimum(fitted.median, upper), upper)


BOOSTED = Model(ModelName.BOOSTED, LEAST_HISTORY_SECONDS, fit, forecast, is_heavy=True)
BOOSTED_CONFORMAL = Model(ModelName.BOOSTED_CONFORMAL, LEAST_HISTORY_SECONDS, fit, _with_conformal, is_heavy=True)
