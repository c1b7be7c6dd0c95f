"""A rate limit by a token bucket."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class RateLimit:
    """A token bucket that gets `per_second` tokens per second and holds at most `burst`. Thread-safe."""

    def __init__(
        self,
        per_second: float,
        burst: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._tokens = float(burst)
        self._at = clock()

    def take(self, wait_seconds: float) -> bool:
        """Take a token, after waiting for at most `wait_seconds`; return whether a token was taken."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second)
            self._at = now
            wait = max(0.0, (1.0 - self._tokens) / self._per_second)
            if wait > wait_seconds:
                return False
            self._tokens -= 1.0
        if wait:
            self._sleep(wait)
        return True

    def is_full(self) -> bool:
        """Return whether the bucket is full, as a new one is."""
        with self._lock:
            return self._tokens + (self._clock() - self._at) * self._per_second >= self._burst
