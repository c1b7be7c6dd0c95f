"""Checks that Prometheus's clock and ours agree, by the `Date` header of its answers (RFC 9110).

Queries contain our time. If our clock is an hour slow, Prometheus correctly returns the values of an hour ago, which
would be served as current. The limit is a minute, which is also the default for the largest age of an answer, and far
more than the difference between synchronized clocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import NoReturn

from adapter.foundation.sources.prometheus.errors import ClockError

MOST_CLOCK_DIFFERENCE_SECONDS = 60.0


def refuse_other_time(query: str, headers: Mapping[str, str], now: float) -> None:
    """Raise ClockError if the answer's `date` differs too much from `now` (Unix seconds)."""
    try:
        theirs = parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return
    if abs(theirs - now) > MOST_CLOCK_DIFFERENCE_SECONDS:
        refuse_difference(query, theirs - now)


def refuse_difference(query: str, seconds_ahead: float) -> NoReturn:
    """Raise ClockError; if `seconds_ahead` is negative, Prometheus's clock is behind ours."""
    behind = "behind" if seconds_ahead > 0 else "ahead of"
    raise ClockError(
        query,
        f"this machine's clock is {abs(seconds_ahead):.0f} s {behind} Prometheus's, so the values are of another time:"
        " synchronize both clocks with NTP",
    )
