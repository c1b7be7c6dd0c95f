"""Bounds on what reviews may cost: the API server in calls, and this process in threads that wait."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from adapter.identity.callers import CrowdedError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

T = TypeVar("T")


class RateLimit:
    """A bucket of tokens: `per_second` flow in, `burst` is what it holds. Safe to use from many threads."""

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

    def take(self, patience_seconds: float) -> bool:
        """Take a token, waiting for one as long as that; return whether it was had."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second)
            self._at = now
            wait = max(0.0, (1.0 - self._tokens) / self._per_second)
            if wait > patience_seconds:
                return False
            self._tokens -= 1.0
        if wait:
            self._sleep(wait)
        return True


class WaiterLimit:
    """How many threads may wait for the API server on behalf of callers that it has not sent.

    Anybody who reaches the port can make up tokens. While the API server is slow each would hold a thread, and the
    autoscaler would find none free.
    """

    def __init__(self, most: int) -> None:
        self._free = threading.BoundedSemaphore(most)

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Be one of them during the block; raises CrowdedError at once if there are too many."""
        if not self._free.acquire(blocking=False):
            raise CrowdedError("too many direct callers wait for reviews at this moment")
        try:
            yield
        finally:
            self._free.release()


class _Flight(Generic[T]):
    """One piece of work under way, and in the end its result."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.result: T | None = None


class SingleFlight(Generic[T]):
    """Lets threads that want the same thing at the same time share one piece of work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, _Flight[T]] = {}

    def join(self, key: Hashable, work: Callable[[], T], patience_seconds: float) -> T | None:
        """Return the result of the work for this key, whoever does it; None if somebody else's does not end in time."""
        with self._lock:
            flight = self._under_way.get(key)
            leads = flight is None
            if flight is None:
                flight = self._under_way[key] = _Flight()
        if not leads:
            flight.ended.wait(patience_seconds)
            return flight.result
        try:
            flight.result = work()
            return flight.result
        finally:
            with self._lock:
                del self._under_way[key]
            flight.ended.set()
