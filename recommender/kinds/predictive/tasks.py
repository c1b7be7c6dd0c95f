"""The forecast tasks of a fleet: from its start-up time and its down window to lead and target window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.predictive.forecast import ForecastTask
from recommender.kinds.predictive.wall_clock import WallClock

if TYPE_CHECKING:
    from recommender.kinds.predictive.predictive_settings import PredictiveSettings

DOWN_WINDOW_SECONDS = 300.0


def task_for(
    startup_seconds: float,
    step_seconds: float,
    settings: PredictiveSettings,
    down_window_seconds: float = DOWN_WINDOW_SECONDS,
) -> ForecastTask:
    """Return the task: pods that are requested now serve after start-up and one step.

    The target is the largest load from then on for as long as a decision is valid: the down window and one step, within
    which a later decision cannot withdraw the request.
    """
    return ForecastTask(
        lead_seconds=startup_seconds + step_seconds,
        window_seconds=down_window_seconds + step_seconds,
        quantile=settings.quantile,
        max_growth=settings.max_growth,
        headroom_ratio=settings.headroom_ratio,
        max_over_history=settings.max_over_history,
        history_seconds=settings.history_seconds,
        budget_ratio=settings.budget_ratio,
        clock=WallClock(settings.timezone, settings.holidays),
    )
