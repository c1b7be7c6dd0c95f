"""What is asked of the models for a recommendation (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.predictive.forecast import ForecastTask

if TYPE_CHECKING:
    from recommender.running.loads.needs import LoadNeed

SCRAPE_SECONDS: Final = 15.0
DOWN_WINDOW_SECONDS: Final = 300.0
"""Default of an HPA's `scaleDown.stabilizationWindowSeconds`."""


def delays_of(need: LoadNeed) -> float:
    """Return how many seconds pass between a change of the load and the scale call."""
    return SCRAPE_SECONDS + need.poll_interval_seconds + (need.settings.hpa_sync_seconds if need.is_published else 0.0)


def task_of(need: LoadNeed) -> ForecastTask:
    """Return the task: the largest load from when capacity serves, for as long as a decision stands."""
    settings = need.settings
    down_window = settings.scale_down.window_seconds if settings.scale_down else DOWN_WINDOW_SECONDS
    return ForecastTask(
        lead_seconds=(settings.horizon_seconds or 0.0) + delays_of(need),
        window_seconds=down_window + need.poll_interval_seconds,
        quantile=settings.quantile,
        max_growth=settings.max_growth,
        headroom_ratio=settings.headroom_ratio,
    )
