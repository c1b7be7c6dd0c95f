"""Recurring times in the five fields of crontab(5)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.tree import shorten

if TYPE_CHECKING:
    from datetime import datetime

_LONGEST_TEXT: Final = 1000
_LONGEST_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_ITEM: Final = re.compile(r"(?P<all>\*)|(?P<first>[0-9]{1,2}|[A-Za-z]{3})(?:-(?P<last>[0-9]{1,2}|[A-Za-z]{3}))?")
_STEP: Final = re.compile(r"[0-9]{1,2}")


class CronError(ValueError):
    """The text is not a cron expression; the message is one sentence."""

    def __init__(self, message: str, fix: str) -> None:
        """`fix` is what to write instead."""
        super().__init__(message)
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Cron:
    """The minutes at which something begins, in the local time of a time zone."""

    minutes: frozenset[int]
    hours: frozenset[int]
    month_days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """Days of the week; 0 is Sunday."""
    is_either_day: bool
    """Whether both day fields are restricted, so that a day counts if either matches. Otherwise, both must match."""

    def matches(self, moment: datetime) -> bool:
        """Return whether the expression includes the minute of a local time; seconds are ignored."""
        return moment.minute in self.minutes and moment.hour in self.hours and self._includes_day(moment)

    def _includes_day(self, moment: datetime) -> bool:
        by_date, by_weekday = moment.day in self.month_days, moment.isoweekday() % 7 in self.weekdays
        matches = by_date or by_weekday if self.is_either_day else by_date and by_weekday
        return moment.month in self.months and matches


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()
    """Names in the order of their numbers, from `first` on."""


_FIELDS: Final = (
    _Field("the minute", 0, 59),
    _Field("the hour", 0, 23),
    _Field("the day of the month", 1, 31),
    _Field("the month", 1, 12, _MONTHS),
    # 7 is also Sunday.
    _Field("the day of the week", 0, 7, _WEEKDAYS),
)


def parse_cron(text: str) -> Cron:
    """Return the times of a cron expression. Raises CronError.

    Fields are lists of numbers, names, ranges and steps (`*/15`, `8-18/2`, `mon-fri`), as in crontab(5). Also as in
    crontab(5), a day field counts as restricted unless it begins with `*`.
    """
    fields = text.split()
    if len(fields) != len(_FIELDS) or len(text) > _LONGEST_TEXT:
        message = f"{shorten(text)!r} has {len(fields)} fields instead of 5"
        fix = "write minute, hour, day of the month, month and day of the week, such as 0 8 * * mon-fri"
        raise CronError(message, fix)
    values = [_values(field, part) for field, part in zip(_FIELDS, fields, strict=True)]
    minutes, hours, month_days, months, weekdays = values
    is_either_day = not fields[2].startswith("*") and not fields[4].startswith("*")
    if not is_either_day and min(month_days) > max(_LONGEST_MONTHS[month - 1] for month in months):
        message = f"{shorten(text)!r} never occurs: none of its months has a day {min(month_days)}"
        raise CronError(message, "write a day that the month has")
    return Cron(minutes, hours, month_days, months, frozenset(day % 7 for day in weekdays), is_either_day)


def _values(field: _Field, text: str) -> frozenset[int]:
    return frozenset(value for item in text.split(",") for value in _item(field, item))


def _item(field: _Field, text: str) -> range:
    """Return the numbers of one item of a list."""
    span, slash, step = text.partition("/")
    found = _ITEM.fullmatch(span)
    if found is None:
        hint = f" or names such as {field.names[1]}" if field.names else ""
        fix = f"write *, or numbers from {field.first} to {field.last}{hint}, such as {field.first},{field.first + 2}"
        raise CronError(f"{shorten(text)!r} is not {field.name} of a cron expression", fix)
    if found["all"]:
        # Sunday must count only once.
        first, last = field.first, field.last - (field.names is _WEEKDAYS)
    else:
        first = _number(field, found["first"])
        last = _number(field, found["last"]) if found["last"] else first
    if last < first:
        end = f"{field.first}-{last}" if last > field.first else f"{last}"
        fix = f"write two ranges, {first}-{field.last - (field.names is _WEEKDAYS)},{end}"
        raise CronError(f"the range {span} of {field.name} ends before it begins", fix)
    if not slash:
        return range(first, last + 1)
    if not found["all"] and not found["last"]:
        fix = f"write {span}-{field.last}/{step}, or {span} alone"
        raise CronError(f"{shorten(text)!r} of {field.name} has a step but no range", fix)
    if not _STEP.fullmatch(step) or not 1 <= int(step) <= field.last:
        fix = f"write a number from 1 to {field.last} after the slash"
        raise CronError(f"{shorten(text)!r} of {field.name} has no usable step", fix)
    return range(first, last + 1, int(step))


def _number(field: _Field, text: str) -> int:
    names = {name: field.first + place for place, name in enumerate(field.names)}
    value = int(text) if text.isdecimal() else names.get(text.lower())
    if value is None or not field.first <= value <= field.last:
        known = f", or {', '.join(field.names)}" if field.names else ""
        fix = f"write {field.first} to {field.last}{known}"
        raise CronError(f"{text} is not {field.name} of a cron expression", fix)
    return value
