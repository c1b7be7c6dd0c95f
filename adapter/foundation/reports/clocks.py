"""Lines that compare a server's clock with this machine's."""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

from adapter.foundation.reports.lines import Line, error, ok, unknown, warning

DOUBTFUL_SECONDS = 5.0
"""Differences above this cannot be due to rounding: a `Date` has whole seconds."""


def clock_line(who: str, ask: Callable[[], float | None], most_seconds: float) -> Line:
    """Return the line about a server's clock; a difference of more than `most_seconds` is an error.

    `ask` sends a request and returns the server's time (Unix seconds), or None if it is not stated; its errors pass
    through.
    """
    before = time.time()
    theirs = ask()
    return judge_clock(who, theirs, (before + time.time()) / 2, most_seconds)


def time_of(date: str) -> float | None:
    """Return the time that a `Date` (RFC 9110) shows, in Unix seconds; None if it shows none."""
    try:
        # `Date` is cut to whole seconds, so on average half a second is missing.
        return parsedate_to_datetime(date).timestamp() + 0.5
    except (ValueError, OverflowError):
        return None


def judge_clock(who: str, theirs: float | None, now: float, most_seconds: float) -> Line:
    """Return the line about a server's clock, which showed `theirs` at `now` by this machine's (both Unix seconds)."""
    line = f"clock/{who.lower()}"
    if theirs is None:
        return unknown(line, f"{who} does not report its time", "compare the clocks manually")
    ahead = theirs - now
    message = f"{who}'s clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
    if abs(ahead) > most_seconds:
        return error(
            line, f"{message}: answers are refused, and certificates may be", "synchronize both clocks with NTP"
        )
    if abs(ahead) > DOUBTFUL_SECONDS:
        return warning(line, message, "synchronize both clocks with NTP")
    return ok(line, f"{who}'s clock and this machine's agree")
