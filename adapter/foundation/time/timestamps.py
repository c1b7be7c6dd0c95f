"""Times in the format of RFC 3339."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

_NO_MOMENT: Final = 253_402_300_800.0
"""The year 10000, in Unix seconds."""


def rfc3339(unix_seconds: float) -> str:
    """Return a time in UTC with whole seconds, such as `2026-11-21T06:00:00Z`."""
    return datetime.fromtimestamp(math.floor(unix_seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_moment(unix_seconds: float) -> bool:
    """Return whether `rfc3339` can write a time: a server other than Prometheus may state any number as one."""
    return 0 <= unix_seconds < _NO_MOMENT


def seconds_with_offset(text: str) -> float:
    """Return an RFC 3339 time in Unix seconds.

    Raises ValueError, also for a time without an offset, which means another moment on every machine.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no offset from UTC")
    return moment.timestamp()


def seconds_of(moment: str | None) -> float | None:
    """Return a time of the Kubernetes API in Unix seconds; None without one."""
    return datetime.fromisoformat(moment).timestamp() if moment else None
