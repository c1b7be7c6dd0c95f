"""Lines that compare a server's clock with this machine's."""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

from adapter.foundation.reports.lines import Line, error, ok, unknown, warning

DOUBTFUL_SECONDS = 5.0
"""Differences above this cannot be due to rounding: a `Date` has whole seconds."""


def compared(who: str, ask: Callable[[], str], most_seconds: float, clock: Callable[[], float] = time.time) -> Line:
    """Return the line about a server's clock; a difference of more than `most_seconds` is an error.

    `ask` sends a request and returns the `Date` (RFC 9110) of the answer; its errors pass through.
    """
    before = clock()
    date = ask()
    return judge_clock(who, date, (before + clock()) / 2, most_seconds)


def judge_clock(who: str, date: str, now: float, most_seconds: float) -> Line:
    """Return the line about a server's clock, which showed `date` at `now` (Unix seconds) by this machine's clock."""
    line = f"clock/{who.lower()}"
    try:
        # `Date` is cut to whole seconds, so on average half a second is missing.
        ahead = parsedate_to_datetime(date).timestamp() + 0.5 - now
    except (ValueError, OverflowError):
        return unknown(line, f"{who} does not report its time", "compare the clocks manually")
    message = f"{who}'s clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
    if abs(ahead) > most_seconds:
        return error(
            line, f"{message}: answers are refused, and certificates may be", "synchronize both clocks with NTP"
        )
    if abs(ahead) > DOUBTFUL_SECONDS:
        return warning(line, message, "synchronize both clocks with NTP")
    return ok(line, f"{who}'s clock and this machine's agree")
