"""A rise that the last steps prove: the model for a service that is too young for any other model.

The mean of the step-to-step changes is extrapolated to the horizon if a one-sided t test of these changes shows that it
is a rise (Student, "The Probable Error of a Mean", 1908). A random walk passes such a test once in a thousand times,
and noise around a level practically never, since each of its rises is followed by a fall. Otherwise there is no
forecast and plain headroom replaces it, so that the model costs nothing extra while it knows nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.forecast import Forecasts, Model, no_fit
from recommender.kinds.predictive.models.load_at_origin import current_load, limit_growth, trend_growth
from recommender.kinds.predictive.predictive_settings import ModelName

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray, IntArray
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.history import LoadHistory

HORIZONS: Final = 2.0
"""How far the changes reach back, as a multiple of how far the forecast reaches ahead."""
LEAST_CHANGES: Final = 7
"""With fewer known changes, nothing is proven. This many need eight minutes of load at steps of a minute."""
CONFIDENCE: Final = 0.999


@dataclass(frozen=True, slots=True)
class LoadChanges:
    """The changes from step to step in the window of each origin; arrays of shape (series, origins)."""

    count: FloatArray
    """How many of the changes are known."""
    mean: FloatArray
    deviation: FloatArray
    """The standard deviation of one change, with n - 1 in the denominator."""

    def is_rise(self) -> BoolArray:
        """Return whether the mean is above 0 with confidence."""
        error = self.deviation / np.sqrt(np.maximum(self.count, 1.0))
        least = least_t(np.maximum(self.count - 1, 1.0)) * error
        return np.asarray((self.count >= LEAST_CHANGES) & (self.mean > 0) & (self.mean >= least))


def least_t(degrees: FloatArray) -> FloatArray:
    """Return the quantile `CONFIDENCE` of Student's t, by the first terms of its expansion around the normal one."""
    z = NormalDist().inv_cdf(CONFIDENCE)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return np.asarray(z + first / degrees + second / degrees**2 + third / degrees**3)


def changes_before(history: LoadHistory, origins: IntArray, width: int) -> LoadChanges:
    """Return the last `width` changes before each origin, some of which may be unknown."""
    changes = np.diff(history.values, axis=1, prepend=np.nan)
    known = ~np.isnan(changes)
    count = _sums(known.astype(np.float64), origins, width)
    mean = _sums(np.where(known, changes, 0.0), origins, width) / np.maximum(count, 1.0)
    squares = _sums(np.where(known, np.square(changes), 0.0), origins, width)
    variance = (squares - count * np.square(mean)) / np.maximum(count - 1, 1.0)
    return LoadChanges(count, mean, np.sqrt(np.maximum(variance, 0.0)))


def _sums(values: FloatArray, origins: IntArray, width: int) -> FloatArray:
    sums = np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0)))
    return np.asarray(sums[:, origins + 1] - sums[:, np.maximum(origins + 1 - width, 0)])


def _forecast(_parameters: None, history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
    step = history.step_seconds
    ahead = task.lead_steps(step) + task.window_steps(step) - 1
    load = current_load(history, origins)
    changes = changes_before(history, origins, max(LEAST_CHANGES, int(np.ceil(HORIZONS * ahead))))
    is_rise = changes.is_rise()
    median = load + ahead * changes.mean
    # The changes of single steps, and the uncertainty of their mean.
    spread = changes.deviation * np.sqrt(ahead + np.square(ahead) / np.maximum(changes.count, 1.0))
    upper = np.fmax(median + NormalDist().inv_cdf(task.quantile) * spread, load * (1 + task.headroom_ratio))
    found = Forecasts(np.where(is_rise, median, np.nan), np.where(is_rise, upper, np.nan))
    return limit_growth(found, history, origins, trend_growth(task), task.lead_seconds)


TREND = Model(ModelName.TREND, 0.0, no_fit, _forecast)
