"""Formats and parses RFC 3339 times, and determines the age of facts even if clocks jump."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final

from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from adapter.foundation.time import timestamps

CLOCK_SLACK_SECONDS: Final = 1.0
"""How far a fact may be ahead of the clock and still count as new."""

_RFC3339: Final = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})")


def rfc3339(seconds: float) -> str:
    """Return a time in Unix seconds as text in UTC, rounded down to seconds: `2026-11-21T06:00:00Z`."""
    return _whole_seconds_text(math.floor(seconds))


@bounded_cache(MEBIBYTE)
def _whole_seconds_text(seconds: int) -> str:
    """Return the text of a time, cached because ten thousand records of one poll share few times."""
    return timestamps.rfc3339(seconds)


def parse_rfc3339(text: str) -> float:
    """Return the Unix seconds of an RFC 3339 time. Raises ValueError, whose message says what to write."""
    try:
        if _RFC3339.fullmatch(text):
            # In UTC, a time may lie outside of the years that a time can state: then it could not be written again.
            return datetime.fromisoformat(text.upper()).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"{text!r} is not a time: write it as 2026-11-21T06:00:00Z")


def age_seconds(time: float, now: float) -> float:
    """Return the age of a fact in seconds.

    A fact from the future has an infinite age: the clock has been set back since then, so the real age is unknown.
    """
    return math.inf if time > now + CLOCK_SLACK_SECONDS else max(0.0, now - time)


def is_fresh(time: float, now: float, stale_after_seconds: float) -> bool:
    """Return whether a fact is recent enough to act on."""
    return age_seconds(time, now) <= stale_after_seconds


def check_age(what: str, time: float, now: float, stale_after_seconds: float) -> str:
    """Return why facts are too old to be used; empty if they can be used.

    `what` is the subject of the sentence with its verb: `an input is`, `the facts of the cluster are`.
    """
    age = age_seconds(time, now)
    if age == math.inf:
        has, its = ("have", "their") if what.endswith("are") else ("has", "its")
        return f"{what.rpartition(' ')[0]} {has} a time in the future, so {its} age is unknown"
    if age > stale_after_seconds:
        return f"{what} {age:.0f} s old, and {stale_after_seconds:g} s are allowed"
    return ""


def oldest_time(times: Collection[float], now: float) -> float:
    """Return the time of the oldest fact; `now` if there are no facts.

    If a fact is from the future, its time is returned instead: its age is unknown, whatever the age of the others.
    """
    newest = max(times, default=now)
    return newest if age_seconds(newest, now) == math.inf else min(times, default=now)
