"""Times: as RFC 3339 states them, and how old a fact is when clocks jump."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

CLOCK_SLACK_SECONDS: Final = 1.0
"""By how much a fact may be ahead of the clock and still count as new."""

_RFC3339: Final = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})")


def rfc3339(seconds: float) -> str:
    """Return Unix seconds as `2026-11-21T06:00:00Z`: UTC, and whole seconds."""
    return _of_whole_seconds(math.floor(seconds))


@lru_cache(maxsize=1024)
def _of_whole_seconds(seconds: int) -> str:
    """Return the text; ten thousand records of one poll share a few times."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_rfc3339(text: str) -> float:
    """Return the Unix seconds that an RFC 3339 time means. Raises ValueError, whose message says what to write."""
    try:
        if _RFC3339.fullmatch(text):
            return datetime.fromisoformat(text.upper()).timestamp()
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"{text!r} is not a time: write it as 2026-11-21T06:00:00Z")


def age_seconds(time: float, now: float) -> float:
    """Return how old a fact is.

    A fact from the future gives infinity: the clock has been set back since, so nobody knows how old the fact is.
    """
    return math.inf if time > now + CLOCK_SLACK_SECONDS else max(0.0, now - time)


def is_fresh(time: float, now: float, stale_after_seconds: float) -> bool:
    """Whether a fact is recent enough to act on."""
    return age_seconds(time, now) <= stale_after_seconds
