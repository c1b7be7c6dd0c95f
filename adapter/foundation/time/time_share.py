"""Limits work to a share of the time, so that the rest is left to others."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class TimeShare:
    """A budget of seconds that grows by a share of each second, up to `burst_seconds`. Not thread-safe."""

    def __init__(
        self,
        share: float,
        burst_seconds: float,
        *,
        longest_pause_seconds: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Limit the pause that work can cause to `longest_pause_seconds`, however long the work took."""
        self._share = share
        self._burst = burst_seconds
        self._least = -share * longest_pause_seconds
        self._clock = clock
        self._left = burst_seconds
        self._at = clock()

    def spend(self, seconds: float) -> None:
        """Subtract seconds that have been spent; a negative number gives seconds back."""
        self._refill()
        self._left = max(self._least, self._left - seconds)

    def pause_seconds(self) -> float:
        """Return the seconds until something may be spent again; 0 if something may be spent now."""
        self._refill()
        return max(0.0, -self._left / self._share)

    def _refill(self) -> None:
        now = self._clock()
        self._left = min(self._burst, self._left + self._share * (now - self._at))
        self._at = now
