"""The forecast task of a fleet: lead and target window follow from its start-up time and its down window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.predictive.forecast import ForecastTask
from recommender.kinds.predictive.wall_clock import WallClock

if TYPE_CHECKING:
    from recommender.kinds.predictive.predictive_settings import PredictiveSettings

DOWN_WINDOW_SECONDS = 300.0


def down_window_seconds(settings: PredictiveSettings) -> float:
    """Return for how long capacity stays at or above what was requested."""
    return DOWN_WINDOW_SECONDS if settings.scale_down is None else settings.scale_down.window_seconds


def task_for(
    startup_seconds: float,
    step_seconds: float,
    settings: PredictiveSettings,
    down_window_seconds: float = DOWN_WINDOW_SECONDS,
) -> ForecastTask:
    """Return the task, whose lead is the start-up time and one step, after which pods that are requested now serve.

    The target is the largest load after the lead for as long as a decision is valid: the down window and one step,
    within which a later decision cannot withdraw the request.
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
