"""The phases of a shutdown: not ready but serving, draining, ended.

When SIGTERM arrives, the Service still routes callers here, because each node removes the endpoint a moment later. So
the process first reports that it is not ready and keeps serving (`delay`); then it accepts no more connections and
finishes its requests (`drain`). A second signal skips the rest of a phase.
"""

from __future__ import annotations

import math
from enum import IntEnum


class Phase(IntEnum):
    """The phase of a shutdown."""

    SERVING = 0
    DELAYING = 1
    """No longer ready, but still serving."""
    DRAINING = 2
    """No new connections; requests in progress are finished."""
    OVER = 3


class Ending:
    """Computes the phase of the shutdown. Times are monotonic seconds."""

    def __init__(self, *, delay_seconds: float, drain_seconds: float) -> None:
        self._delay = delay_seconds
        self._drain = drain_seconds
        self._drain_at: float | None = None
        self._over_at = 0.0

    def begin(self, now: float) -> None:
        """Start the shutdown with the delay; do nothing if it has started."""
        if self._drain_at is None:
            self._set(now + self._delay)

    def hurry(self, now: float) -> None:
        """Go to the next phase immediately: skip the rest of the delay or of the drain."""
        if self._drain_at is None or now < self._drain_at:
            self._set(now)
        else:
            self._over_at = now

    def phase(self, now: float) -> Phase:
        """Return the phase at this time."""
        if self._drain_at is None:
            return Phase.SERVING
        if now < self._drain_at:
            return Phase.DELAYING
        return Phase.DRAINING if now < self._over_at else Phase.OVER

    def next_phase(self, now: float) -> float:
        """Return the seconds until the next phase begins by itself; infinity if none does."""
        if self._drain_at is None:
            return math.inf
        return max(0.0, (self._drain_at if now < self._drain_at else self._over_at) - now)

    def _set(self, drain_at: float) -> None:
        self._drain_at = drain_at
        self._over_at = drain_at + self._drain
