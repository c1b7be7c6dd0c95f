"""Loads whose cycle is not a day: models, and the choice among them, treat each cycle as a day.

Models measure time only in shares of a day. So a season of another length needs no other model: times are stretched on
the way in, and the times in the answer are shrunk on the way out. Replicas and loads stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recommender.kinds.predictive.history import LoadHistory
from recommender.kinds.predictive.wall_clock import WallClock

if TYPE_CHECKING:
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.simulation.serving import FleetSettings


def stretched_history(history: LoadHistory, stretch: float) -> LoadHistory:
    """Return the history with all of its times multiplied. The samples are shared, not copied."""
    if stretch == 1:
        return history
    return LoadHistory(history.start_seconds * stretch, history.step_seconds * stretch, history.values)


def stretched_task(task: ForecastTask, stretch: float) -> ForecastTask:
    """Return the task with all of its durations multiplied; if a season is not a day, local clocks are irrelevant."""
    return replace(
        task,
        clock=task.clock if stretch == 1 else WallClock(),
        lead_seconds=task.lead_seconds * stretch,
        window_seconds=task.window_seconds * stretch,
        history_seconds=task.history_seconds * stretch,
    )


def stretched_fleet(fleet: FleetSettings, stretch: float) -> FleetSettings:
    """Return the simulated fleet with all of its durations multiplied."""
    return replace(
        fleet,
        step_seconds=fleet.step_seconds * stretch,
        startup_seconds=fleet.startup_seconds * stretch,
        down_window_seconds=fleet.down_window_seconds * stretch,
    )
