from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from recommender.kinds.predictive.policy.overrides_and_schedules import scheduled_bound
from recommender.kinds.predictive.predictive_settings import Schedule
from recommender.schedules.cron import parse_cron
from recommender.schedules.last_start import latest_start

HOUR = 3600.0


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("cron", "zone", "hours", "moment", "active"),
    [
        ("0 8 * * *", "UTC", 10, "2026-11-23T07:59:59Z", False),
        ("0 8 * * *", "UTC", 10, "2026-11-23T08:00:00Z", True),
        ("0 8 * * *", "UTC", 10, "2026-11-23T17:59:59Z", True),
        ("0 8 * * *", "UTC", 10, "2026-11-23T18:00:00Z", False),
        ("0 8 * * mon-fri", "UTC", 10, "2026-11-22T12:00:00Z", False),
        ("0 8 * * mon-fri", "UTC", 10, "2026-11-23T12:00:00Z", True),
        # Local time: 8:00 in Berlin is 7:00 UTC in winter and 6:00 in summer.
        ("0 8 * * *", "Europe/Berlin", 1, "2026-01-23T07:30:00Z", True),
        ("0 8 * * *", "Europe/Berlin", 1, "2026-07-23T06:30:00Z", True),
        ("0 8 * * *", "Europe/Berlin", 1, "2026-07-23T07:30:00Z", False),
        # Over midnight, over days, over the end of a year.
        ("0 22 * * *", "UTC", 8, "2026-11-23T05:59:00Z", True),
        ("0 18 * * fri", "UTC", 60, "2026-11-22T23:00:00Z", True),
        ("0 18 * * fri", "UTC", 60, "2026-11-23T06:00:00Z", False),
        ("0 0 31 12 *", "UTC", 48, "2027-01-01T23:59:00Z", True),
        # Clocks go forward at 2:00 in Berlin on 29 March 2026, 1:00 UTC: 2:30 does not exist, and 3:00 takes its place.
        ("30 2 * * *", "Europe/Berlin", 1, "2026-03-29T00:59:59Z", False),
        ("30 2 * * *", "Europe/Berlin", 1, "2026-03-29T01:00:00Z", True),
        ("30 2 * * *", "Europe/Berlin", 1, "2026-03-29T01:59:59Z", True),
        ("30 2 * * *", "Europe/Berlin", 1, "2026-03-29T02:00:00Z", False),
        # Clocks go back at 3:00 on 25 October 2026, 1:00 UTC: 2:30 is twice, at 0:30 and 1:30 UTC, and counts once.
        ("30 2 * * *", "Europe/Berlin", 0.5, "2026-10-25T00:30:00Z", True),
        ("30 2 * * *", "Europe/Berlin", 0.5, "2026-10-25T01:00:00Z", False),
        ("30 2 * * *", "Europe/Berlin", 0.5, "2026-10-25T01:30:00Z", False),
        # A start at every hour counts both times.
        ("30 * * * *", "Europe/Berlin", 0.25, "2026-10-25T00:30:00Z", True),
        ("30 * * * *", "Europe/Berlin", 0.25, "2026-10-25T01:30:00Z", True),
        # A gap of half an hour, and one of a whole day.
        ("15 2 * * *", "Australia/Lord_Howe", 1, "2026-10-03T15:30:00Z", True),
        ("0 12 30 12 *", "Pacific/Apia", 1, "2011-12-30T10:00:00Z", True),
        # The duration is one of elapsed time.
        ("0 0 * * *", "Europe/Berlin", 24, "2026-10-25T22:30:00Z", False),
    ],
)
def test_a_schedule_holds_from_its_start_for_its_duration(
    cron: str,
    zone: str,
    hours: float,
    moment: str,
    active: bool,  # noqa: FBT001 - a column of the table
) -> None:
    found = scheduled_bound([Schedule(cron, zone, hours * HOUR, 5)], seconds(moment))
    assert (found is not None) == active


def test_the_highest_bound_holds() -> None:
    schedules = [Schedule("* * * * *", "UTC", HOUR, bound) for bound in (3, 9, 5, 9)]
    found = scheduled_bound(schedules, seconds("2026-11-23T08:00:30Z"))
    assert found is not None
    assert found.replicas == 9
    assert found.detail == "at least 9 by '* * * * *' (UTC), until 2026-11-23T09:00:00Z"


def test_overlapping_starts_extend_each_other() -> None:
    schedule = [Schedule("0 8,9 * * *", "UTC", 90 * 60, 5)]
    found = scheduled_bound(schedule, seconds("2026-11-23T10:15:00Z"))
    assert found is not None
    assert found.detail.endswith("until 2026-11-23T10:30:00Z")


@given(
    st.sampled_from(["0 8 * * *", "30 2 * * *", "*/15 2-3 * * *", "0 0 1 * mon", "5 * * * *", "59 23 31 * *"]),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "UTC"]),
    st.integers(int(seconds("2026-01-01T00:00:00Z")) // 60, int(seconds("2027-01-01T00:00:00Z")) // 60),
    st.integers(1, 600),
)
@examples(max_examples=60)
def test_outside_of_clock_changes_the_latest_start_is_the_last_matching_minute(
    text: str, zone_name: str, minute: int, minutes: int
) -> None:
    cron, zone = parse_cron(text), ZoneInfo(zone_name)
    now, earliest = (datetime.fromtimestamp(60 * each, UTC) for each in (minute, minute - minutes))
    local = [datetime.fromtimestamp(60 * each, zone) for each in range(minute - minutes + 1, minute + 1)]
    if len({moment.utcoffset() for moment in [*local, earliest.astimezone(zone)]}) > 1:
        return
    matching = [moment.timestamp() for moment in local if cron.matches(moment) and not moment.fold]
    found = latest_start(cron, zone, earliest, now)
    if not any(moment.fold for moment in local):
        assert found == (max(matching) if matching else None)
