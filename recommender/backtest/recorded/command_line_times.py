"""Times as people write them on a command line: RFC 3339, a date, or a time ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from adapter.foundation.objects.durations import parse_duration
from recommender.decisions.texts.times import parse_rfc3339

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


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
