"""Computes the last start of a schedule: a cron expression in the local time of a time zone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from recommender.schedules.cron import Cron, parse_cron

_ALL_HOURS: Final = 24
_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)


@bounded_cache(MEBIBYTE)
def latest_start_of(cron: str, timezone: str, duration_seconds: float, minute: int) -> float | None:
    """Return the latest start up to `minute`, in minutes since the epoch; None if there was none within the duration.

    Starts are whole minutes; the result is in seconds since the epoch. It is cached, since thousands of targets of
    one recommendation ask for the same minute. Raises CronError or ZoneInfoNotFoundError.
    """
    now, zone = datetime.fromtimestamp(minute * 60, UTC), ZoneInfo(timezone)
    earliest = now - timedelta(seconds=duration_seconds)
    return latest_start(parse_cron(cron), zone, earliest, now)


def latest_start(cron: Cron, zone: ZoneInfo, earliest: datetime, latest: datetime) -> float | None:
    """Return the last start after `earliest` and up to `latest`, in seconds since the epoch; None if there is none.

    If clocks go forward, a start in the skipped time happens at the first minute after the gap. If clocks go back, a
    start at a fixed hour happens only the first time that the hour occurs, and a start at every hour happens both
    times. Source: cron(8) of Debian, which treats jobs in this way.
    """
    day = latest.astimezone(zone).date()
    # The start of a gap at the end of a day belongs to that day, so there is one more day.
    while day >= earliest.astimezone(zone).date() - _DAY:
        starts = [start for start in _starts(cron, zone, day) if earliest < start <= latest]
        if starts:
            return max(starts).timestamp()
        day -= _DAY
    return None


def _starts(cron: Cron, zone: ZoneInfo, day: date) -> Iterator[datetime]:
    """Yield the starts of a local day, in UTC."""
    midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - local times, of which some do not exist
    if not cron.matches(midnight.replace(hour=min(cron.hours), minute=min(cron.minutes))):
        return
    folds = (0, 1) if len(cron.hours) == _ALL_HOURS else (0,)
    for hour in cron.hours:
        for minute in cron.minutes:
            for fold in folds:
                yield _instant(midnight.replace(hour=hour, minute=minute, fold=fold), zone)


def _instant(local: datetime, zone: ZoneInfo) -> datetime:
    """Return a local time in UTC; a time in a gap becomes the first minute after the gap."""
    instant = local.replace(tzinfo=zone).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == local:
        return instant
    before = local.replace(tzinfo=zone, fold=0).utcoffset()
    # Inside a gap, the offset from before it leads to an instant after it, by less than the length of the gap.
    instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    while (instant - _MINUTE).astimezone(zone).utcoffset() != before:
        instant -= _MINUTE
    return instant
