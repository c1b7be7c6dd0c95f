"""The tasks that models are given for a recommendation (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.kinds.predictive.cycle_length import stretched_fleet, stretched_task
from recommender.kinds.predictive.simulation.serving import FleetSettings
from recommender.kinds.predictive.tasks import down_window_seconds, task_for

if TYPE_CHECKING:
    from recommender.decisions.loads.control_delays import ControlDelays
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.running.loads.load_needs import LoadNeed

_OUTGROWN_RATIO: Final = 1.1


def task_of(need: LoadNeed, delays: ControlDelays) -> ForecastTask:
    """Return the task: to predict the largest load from the time when new capacity serves until the decision ends.

    The task is in the time of the models, in which a season takes a day.
    """
    startup_seconds = (need.settings.horizon_seconds or 0.0) + delays.scrape.seconds + delays.hpa_sync.seconds
    task = task_for(startup_seconds, delays.refresh.seconds, need.settings, down_window_seconds(need.settings))
    return stretched_task(task, need.settings.stretch)


def is_outgrown(learned: ForecastTask, current: ForecastTask, step_seconds: float) -> bool:
    """Return whether forecasts must now look more than a tenth, and more than a step, further ahead than was learned.

    This happens because delays are assumed until they have been measured, and because samples may begin to arrive late.
    `step_seconds` is in the time of the models.
    """
    least = max(learned.lead_seconds * _OUTGROWN_RATIO, learned.lead_seconds + step_seconds)
    return current.lead_seconds > least


def fleet_of(need: LoadNeed, task: ForecastTask, step_seconds: float) -> FleetSettings:
    """Return the settings for simulating the models: a pod serves once the lead of the task has passed."""
    settings = need.settings
    fleet = FleetSettings(
        step_seconds=step_seconds,
        startup_seconds=max(0.0, task.lead_seconds / settings.stretch - step_seconds),
        load_per_replica=settings.load_per_replica or 1.0,
        min_replicas=settings.min_replicas,
        max_replicas=settings.max_replicas,
        down_window_seconds=down_window_seconds(need.settings),
    )
    return stretched_fleet(fleet, settings.stretch)
