"""Rules that use only the last hour: they suit noise around a level, and know nothing of seasons.

`conformal` is the largest load of the last ten minutes plus the smallest multiple of the last hour's standard deviation
that would have covered past loads as often as required. `largest-hour` is the largest load of the last hour plus a
share of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.predictive.calibration import calibrated_room, in_blocks
from recommender.kinds.predictive.forecast import Forecasts, Model, no_fit
from recommender.kinds.predictive.models.features import HOUR_SECONDS, MINUTE_SECONDS, StepRange, in_steps, levels
from recommender.kinds.predictive.models.load_at_origin import limit_growth
from recommender.kinds.predictive.predictive_settings import ModelName

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.history import LoadHistory

PEAK_SECONDS = 10 * MINUTE_SECONDS
FLOOR_RATIO = 0.1
"""A deviation is at least this share of the step-to-step changes of the last week's load."""
BLOCK_SAMPLES = 400_000


def conformal_forecasts(_fitted: None, history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
    """Return the largest load of the last ten minutes, with conformal room above it."""

    def forecast_block(block: LoadHistory) -> Forecasts:
        around = StepRange(block.values, 0, block.steps - 1)
        peak = around.maximum(in_steps(PEAK_SECONDS, block.step_seconds))
        unit = around.deviation(max(3, in_steps(HOUR_SECONDS, block.step_seconds)))
        unit = unit + FLOOR_RATIO * levels(block, 0, block.steps - 1).floor
        found = calibrated_room(lambda at: peak[:, at], lambda at: unit[:, at], block, origins, task)
        return limit_growth(found, block, origins, task.max_growth, task.lead_seconds)

    return in_blocks(forecast_block, history, origins, _rows(history))


def _largest_hour(_parameters: None, history: LoadHistory, origins: IntArray, task: ForecastTask) -> Forecasts:
    def forecast_block(block: LoadHistory) -> Forecasts:
        around = StepRange(block.values, 0, block.steps - 1)
        peak: FloatArray = around.maximum(in_steps(HOUR_SECONDS, block.step_seconds))
        found = calibrated_room(lambda at: peak[:, at], lambda at: peak[:, at], block, origins, task)
        return limit_growth(found, block, origins, task.max_growth, task.lead_seconds)

    return in_blocks(forecast_block, history, origins, _rows(history))


def _rows(history: LoadHistory) -> int:
    return max(1, BLOCK_SAMPLES // max(1, history.steps))


CONFORMAL = Model(ModelName.CONFORMAL, 0.0, no_fit, conformal_forecasts)
LARGEST_HOUR = Model(ModelName.LARGEST_HOUR, 0.0, no_fit, _largest_hour)
