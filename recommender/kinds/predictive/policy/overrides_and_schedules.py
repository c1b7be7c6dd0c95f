"""Overrides, schedules, `freezeUnless` and the range of sizes, which apply whatever the forecast is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.decisions.limits import range_limits
from recommender.decisions.texts.times import rfc3339
from recommender.kinds.predictive.policy.arithmetic import known_value
from recommender.schedules.last_start import latest_start_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.decisions.limits import SizeTrail
    from recommender.kinds.predictive.policy.load_situation import LoadSituation
    from recommender.kinds.predictive.predictive_settings import Override, PredictiveSettings, Schedule


@dataclass(frozen=True, slots=True)
class ScheduledBound:
    """The lower bound that a schedule sets at one moment."""

    replicas: int
    detail: str


def scheduled_bound(schedules: Sequence[Schedule], now: float) -> ScheduledBound | None:
    """Return the highest lower bound that applies now, or the first of equal ones; None if no schedule applies.

    Raises CronError or ZoneInfoNotFoundError for a schedule that the configuration's reader would have rejected.
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


def freeze_reason(settings: PredictiveSettings, situation: LoadSituation) -> str:
    """Return why the last size is kept; empty if it is not."""
    if known_value(situation.load) is None:
        return "the load is unknown"
    if settings.freeze_unless is None:
        return ""
    gate = known_value(situation.gate)
    if gate is None:
        return "the query of freezeUnless has no value"
    return "" if gate else "the query of freezeUnless is 0"


def active_override(settings: PredictiveSettings, now: float) -> Override | None:
    """Return the override if it has not ended."""
    override = settings.override
    return override if override is not None and now < override.until else None


def apply_bounds(settings: PredictiveSettings, trail: SizeTrail, now: float) -> None:
    """Apply `schedule`, `override`, `min` and `max`; each overrules the previous ones, so `max` overrules all."""
    scheduled = scheduled_bound(settings.schedules, now) if settings.schedules else None
    if scheduled is not None:
        trail.raise_to("schedule", scheduled.replicas, scheduled.detail)
    override = active_override(settings, now)
    if override is not None:
        trail.change("override", override.replicas, f"{override.replicas} until {rfc3339(override.until)}")
    trail.limit(range_limits(settings.min_replicas, settings.max_replicas))
