"""Shares one piece of work among all threads that need its result at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Lets threads that need the same result at the same time share one piece of work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, Future[T | None]] = {}

    def join(self, key: Hashable, work: Callable[[], T], wait_seconds: float) -> T | None:
        """Return the result of the work for this key; None if another thread does it and fails or takes too long."""
        mine: Future[T | None] = Future()
        with self._lock:
            flight = self._under_way.setdefault(key, mine)
        if flight is not mine:
            with suppress(TimeoutError):
                return flight.result(wait_seconds)
            return None
        result: T | None = None
        try:
            result = work()
            return result
        finally:
            with self._lock:
                del self._under_way[key]
            mine.set_result(result)
