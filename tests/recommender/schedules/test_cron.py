"""Cron expressions: which minutes they include, and why others are refused."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.schedules.cron import Cron, CronError, parse_cron

MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS = (
    frozenset(range(60)),
    frozenset(range(24)),
    frozenset(range(1, 32)),
    frozenset(range(1, 13)),
    frozenset(range(7)),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", Cron(MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS, is_either_day=False)),
        (
            "*/15 8-18/2 * * mon-FRI",
            Cron(
                frozenset({0, 15, 30, 45}),
                frozenset({8, 10, 12, 14, 16, 18}),
                DAYS,
                MONTHS,
                frozenset(range(1, 6)),
                is_either_day=False,
            ),
        ),
        (
            "0,30 0 1,15 jan,6-7 7",
            Cron(
                frozenset({0, 30}),
                frozenset({0}),
                frozenset({1, 15}),
                frozenset({1, 6, 7}),
                frozenset({0}),
                is_either_day=True,
            ),
        ),
        (
            "  5   4 * *   5-7 ",
            Cron(frozenset({5}), frozenset({4}), DAYS, MONTHS, frozenset({5, 6, 0}), is_either_day=False),
        ),
        (
            "0 0 */2 * */3",
            Cron(
                frozenset({0}),
                frozenset({0}),
                frozenset(range(1, 32, 2)),
                MONTHS,
                frozenset({0, 3, 6}),
                is_either_day=False,
            ),
        ),
    ],
)
def test_expressions_are_read_as_by_crontab(text: str, expected: Cron) -> None:
    assert parse_cron(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' has 0 fields instead of 5"),
        ("@daily", "'@daily' has 1 fields instead of 5"),
        ("0 0 8 * * 1", "'0 0 8 * * 1' has 6 fields instead of 5"),
        ("60 * * * *", "60 is not the minute of a cron expression"),
        ("* 24 * * *", "24 is not the hour of a cron expression"),
        ("* * 0 * *", "0 is not the day of the month of a cron expression"),
        ("* * * 13 *", "13 is not the month of a cron expression"),
        ("* * * * 8", "8 is not the day of the week of a cron expression"),
        ("* * * mon *", "mon is not the month of a cron expression"),
        ("jan * * * *", "jan is not the minute of a cron expression"),
        ("* * ? * *", "'?' is not the day of the month of a cron expression"),
        ("1,, * * * *", "'' is not the minute of a cron expression"),
        ("-5 * * * *", "'-5' is not the minute of a cron expression"),
        ("* 22-2 * * *", "the range 22-2 of the hour ends before it begins"),
        ("* * * * fri-sun", "the range fri-sun of the day of the week ends before it begins"),
        ("5/15 * * * *", "'5/15' of the minute has a step but no range"),
        ("*/0 * * * *", "'*/0' of the minute has no usable step"),
        ("*/60 * * * *", "'*/60' of the minute has no usable step"),
        ("*/x * * * *", "'*/x' of the minute has no usable step"),
        ("*/ * * * *", "'*/' of the minute has no usable step"),
        ("٣ * * * *", "'٣' is not the minute of a cron expression"),
        ("0 0 31 2,4 *", "'0 0 31 2,4 *' never occurs: none of its months has a day 31"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_cron(text)
    assert str(caught.value) == message
    assert caught.value.fix


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("* 22-2 * * *", "write two ranges, 22-23,0-2"),
        ("* * * * fri-sun", "write two ranges, 5-6,0"),
        ("5/15 * * * *", "write 5-59/15, or 5 alone"),
    ],
)
def test_the_suggested_fix_is_a_valid_expression(text: str, fix: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_cron(text)
    assert caught.value.fix == fix


@pytest.mark.parametrize(
    ("text", "moment", "expected"),
    [
        ("30 8 * * mon-fri", "2026-11-23T08:30:59", True),
        ("30 8 * * mon-fri", "2026-11-22T08:30:00", False),
        ("30 8 * * mon-fri", "2026-11-23T08:31:00", False),
        ("30 8 * * mon-fri", "2026-11-23T09:30:00", False),
        ("0 0 29 2 *", "2028-02-29T00:00:00", True),
        ("0 0 13 * fri", "2026-11-13T00:00:00", True),
        ("0 0 13 * fri", "2026-11-20T00:00:00", True),
        ("0 0 13 * fri", "2026-12-13T00:00:00", True),
        ("0 0 13 * fri", "2026-12-14T00:00:00", False),
        ("0 0 1-7 dec *", "2026-11-03T00:00:00", False),
        ("0 0 */2 * sun", "2026-11-22T00:00:00", False),
        ("0 0 */2 * sun", "2026-11-15T00:00:00", True),
    ],
)
def test_expressions_match_the_right_minutes(text: str, moment: str, *, expected: bool) -> None:
    assert parse_cron(text).matches(datetime.fromisoformat(moment)) is expected


@given(text=st.text(alphabet="0123456789*/-, monjaf?@", max_size=30))
def test_any_text_is_an_expression_that_matches_some_time_or_an_error(text: str) -> None:
    try:
        found = parse_cron(text)
    except CronError:
        return
    assert all([found.minutes, found.hours, found.month_days, found.months, found.weekdays])
