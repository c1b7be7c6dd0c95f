"""Determines how long to wait before Prometheus is asked again after a failure."""

from __future__ import annotations

from adapter.foundation.time.backoff import backoff_seconds

LONGEST_RETRY_SECONDS = 5.0
"""A failing query is sent again after this time at the latest."""


def retry_after(failures: int, period: float) -> float:
    """Return the seconds until a query is sent again after that many consecutive failures: 1, 2, 4, and then 5.

    It is never longer than `period`, the seconds between two successful refreshes.
    """
    return min(period, backoff_seconds(failures, first_seconds=1.0, longest_seconds=LONGEST_RETRY_SECONDS))
