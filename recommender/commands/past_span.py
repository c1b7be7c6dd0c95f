"""The past that a command reads: its length, such as `--last 14d`, its ends and its step."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.durations import LONGEST_SECONDS, format_duration, parse_duration
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.flags.table import Kind
from recommender.decisions.texts.times import parse_rfc3339

if TYPE_CHECKING:
    from adapter.foundation.service.flags.table import FlagValues

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
DEFAULT_LAST_SECONDS: Final = 14 * 86_400.0


def _span(text: str) -> float:
    """Return the seconds of `90`, `90s`, `1m30s` or `8d`; raises ValueError."""
    for parse in (float, parse_duration):
        try:
            seconds = parse(text)
        except ValueError:
            continue
        if 0 <= seconds <= LONGEST_SECONDS:
            return seconds
    raise ValueError(f"{text!r} is not a duration: write seconds, or numbers with units, such as 90s, 5m or 8d")


def _span_text(seconds: object) -> str:
    return format_duration(seconds) if isinstance(seconds, float | int) else str(seconds)


SPAN: Final = Kind("DURATION", _span, _span_text)


def parse_moment(text: str, now: float) -> float:
    """Return the Unix seconds of an RFC 3339 time, a date, a time ago such as `-14d`, or `now`.

    A date is its midnight in UTC. Raises ValueError, whose message says what to write.
    """
    try:
        if text == "now":
            return now
        if text.startswith("-"):
            return now + parse_duration(text)
        if _DATE.fullmatch(text):
            return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
        return parse_rfc3339(text)
    except ValueError:
        fix = "write 2026-11-21T06:00:00Z, a date such as 2026-11-21, or a time ago such as -14d"
        raise ValueError(f"{text!r} is not a time: {fix}") from None


def moment_of(values: FlagValues, name: str, now: float) -> float:
    """Return the Unix seconds that a flag names; raises UsageError."""
    try:
        return parse_moment(values.text(name), now)
    except ValueError as error:
        raise UsageError(f"--{name}: {error}") from error


def whole_step(seconds: float) -> float:
    """Return the step at which Prometheus is queried; raises UsageError."""
    if seconds < 1 or seconds != int(seconds):
        raise UsageError(f"--step of {seconds:g} s: write whole seconds, such as 60s")
    return seconds
