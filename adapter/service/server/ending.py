"""The order in which a process ends: off the endpoints, serve on, drain, over.

A SIGTERM comes while the Service still sends callers here: endpoints are taken out a moment later, on every node by
itself. So the process first says that it is not ready and serves on (`delay`), then takes no more connections and
finishes what it has (`drain`). Whoever is in a hurry signals again.
"""

from __future__ import annotations

from enum import IntEnum


class Phase(IntEnum):
    """How far the end has come."""

    SERVING = 0
    DELAYING = 1
    """Not ready any more, but serving."""
    DRAINING = 2
    """No new connections; requests under way are finished."""
    OVER = 3


class Ending:
    """When which phase begins. Times are monotonic seconds."""

    def __init__(self, *, delay_seconds: float, drain_seconds: float) -> None:
        self._delay = delay_seconds
        self._drain = drain_seconds
        self._drain_at: float | None = None
        self._over_at = 0.0

    def begin(self, now: float) -> None:
        """Begin the end, with the delay; nothing if it has begun."""
        if self._drain_at is None:
            self._set(now + self._delay)

    def hurry(self, now: float) -> None:
        """Go on to the next step at once: leave out the delay, or what is left of the drain."""
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

    def _set(self, drain_at: float) -> None:
        self._drain_at = drain_at
        self._over_at = drain_at + self._drain
