"""Shares one piece of work among all threads that need its result at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class _Flight(Generic[T]):
    """One piece of work in progress, and its result once it has ended."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.result: T | None = None


class SingleFlight(Generic[T]):
    """Lets threads that need the same result at the same time share one piece of work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, _Flight[T]] = {}

    def join(self, key: Hashable, work: Callable[[], T], wait_seconds: float) -> T | None:
        """Return the result of the work for this key; None if another thread does it and fails or takes too long."""
        with self._lock:
            flight = self._under_way.get(key)
            leads = flight is None
            if flight is None:
                flight = self._under_way[key] = _Flight()
        if not leads:
            flight.ended.wait(wait_seconds)
            return flight.result
        try:
            flight.result = work()
            return flight.result
        finally:
            with self._lock:
                del self._under_way[key]
            flight.ended.set()
