"""Lower bounds at recurring times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.decisions.texts.times import rfc3339
from recommender.reading.recurring import latest_start_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.kinds.predictive.predictive_settings import Schedule


@dataclass(frozen=True, slots=True)
class ScheduledBound:
    """A lower bound that holds at a moment."""

    replicas: int
    detail: str


def scheduled_bound(schedules: Sequence[Schedule], now: float) -> ScheduledBound | None:
    """Return the highest lower bound of the schedules, the first one of several; None while there is none.

    Raises CronError or ZoneInfoNotFoundError for a schedule that the configuration's reader would have refused.
    """
    highest: ScheduledBound | None = None
    for schedule in schedules:
        if highest is None or schedule.min_replicas > highest.replicas:
            start = latest_start_of(schedule.cron, schedule.timezone, schedule.duration_seconds, int(now // 60))
            if start is not None and now < start + schedule.duration_seconds:
                end = rfc3339(start + schedule.duration_seconds)
                detail = f"at least {schedule.min_replicas} by {schedule.cron!r} ({schedule.timezone}), until {end}"
                highest = ScheduledBound(schedule.min_replicas, detail)
    return highest
