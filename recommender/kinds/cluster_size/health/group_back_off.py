"""Groups that failed to grow are left alone for a while (`utils/backoff`)."""

from __future__ import annotations

from typing import Final

from recommender.kinds.cluster_size.model.memory import LONGEST_BACK_OFF_SECONDS, BackOff

INITIAL_SECONDS: Final = 300.0
FORGOTTEN_SECONDS: Final = 10_800.0
"""After this time without a failure, the next one counts as the first."""


def after_failure(last: BackOff | None, now: float, reason: str) -> BackOff:
    """Return the back-off of a group that fails now.

    The first back-off lasts five minutes, and each further one twice as long as the last, at most half an hour. A
    failure before the last one has expired restarts it with the same duration.
    """
    seconds = INITIAL_SECONDS
    if last is not None and not is_forgotten(last, now):
        seconds = (
            last.duration_seconds if now < last.until else min(last.duration_seconds * 2, LONGEST_BACK_OFF_SECONDS)
        )
    return BackOff(until=now + seconds, duration_seconds=seconds, failed_at=now, reason=reason)


def is_forgotten(back_off: BackOff, now: float) -> bool:
    """Return whether the last failure is so long ago that it no longer counts."""
    return now - back_off.failed_at > FORGOTTEN_SECONDS
