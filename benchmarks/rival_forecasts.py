"""The forecasts of other autoscalers for the load of one series, as their documentation and papers describe them.

Each is the capacity that the policy requests at each step, from the facts known then; all are compared at equal cost.

* `phpa-linear`: least squares through the last six samples, at now + look-ahead (PHPA's `Linear`).
* `phpa-holt-winters`: additive Holt-Winters with fixed smoothing, a season of a day, one forecast at now + look-ahead
  (PHPA's `HoltWinters` with `optimized=False`; the largest of forecast and current load is its decision type).
* `percentile`: the 95th percentile of the trailing week, whatever the time of day (VPA's and Crane's percentile).
* `largest-of-both`: the largest load of the coming hour yesterday, or the current one if larger (Crane's EHPA).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.simulation.serving import sliding_maximum

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.history import LoadHistory

LINEAR_SAMPLES: Final = 6
ALPHA, BETA, GAMMA = 0.9, 0.1, 0.9
PERCENTILE: Final = 95.0
WEEK_DAYS: Final = 7
_SECONDS_BETWEEN_PERCENTILES: Final = 3600.0
_AHEAD_SECONDS: Final = 3600.0


def rival_capacities(history: LoadHistory, task: ForecastTask) -> dict[str, FloatArray]:
    """Return the capacity that each rival requests at each step, in units of load; the load until it has a forecast."""
    load = _without_gaps(history.values[0])
    lead = task.lead_steps(history.step_seconds)
    day = max(2, round(DAY_SECONDS / history.step_seconds))
    found = {
        "phpa-linear": _line(load, lead),
        "phpa-holt-winters": _holt_winters(load, lead, day),
        "percentile": _percentile(load, day, max(1, int(_SECONDS_BETWEEN_PERCENTILES / history.step_seconds))),
        "largest-of-both": _yesterday(load, day, max(1, int(_AHEAD_SECONDS / history.step_seconds))),
    }
    return {name: np.where(np.isfinite(values), np.maximum(values, load), load) for name, values in found.items()}


def _without_gaps(load: FloatArray) -> FloatArray:
    """Return the load with the last known value in each gap, and 0 before the first value."""
    places = np.maximum.accumulate(np.where(np.isnan(load), -1, np.arange(len(load))))
    return np.where(places >= 0, load[np.maximum(places, 0)], 0.0)


def _line(load: FloatArray, lead: int) -> FloatArray:
    times = np.arange(LINEAR_SAMPLES) - (LINEAR_SAMPLES - 1.0)
    centred = times - times.mean()
    weights = 1 / LINEAR_SAMPLES + centred * (lead - times.mean()) / (centred @ centred)
    found = np.full(len(load), np.nan)
    if len(load) >= LINEAR_SAMPLES:
        found[LINEAR_SAMPLES - 1 :] = np.convolve(load, weights[::-1], mode="valid")
    return found


def _holt_winters(load: FloatArray, lead: int, season: int) -> FloatArray:
    found = np.full(len(load), np.nan)
    if len(load) <= 2 * season:
        return found
    level = float(load[:season].mean())
    trend = float((load[season : 2 * season] - load[:season]).mean() / season)
    seasons = (load[:season] - level).tolist()
    for step in range(season, len(load)):
        before, place, value = level, step % season, float(load[step])
        level = ALPHA * (value - seasons[place]) + (1 - ALPHA) * (level + trend)
        trend = BETA * (level - before) + (1 - BETA) * trend
        seasons[place] = GAMMA * (value - level) + (1 - GAMMA) * seasons[place]
        if step >= 2 * season:
            found[step] = level + lead * trend + seasons[(step + lead) % season]
    return found


def _percentile(load: FloatArray, day: int, every: int) -> FloatArray:
    found = np.full(len(load), np.nan)
    for step in range(day, len(load), every):
        found[step : step + every] = np.percentile(load[max(0, step - WEEK_DAYS * day) : step], PERCENTILE)
    return found


def _yesterday(load: FloatArray, day: int, ahead: int) -> FloatArray:
    found = np.full(len(load), np.nan)
    ahead = min(ahead, day - 1)
    largest = sliding_maximum(load, ahead + 1)
    found[day:] = largest[ahead : len(load) - day + ahead]
    return found
