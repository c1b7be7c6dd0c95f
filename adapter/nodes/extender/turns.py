"""A limit on work that is done at once; a thread beyond it waits for its turn, but not for long."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class NoTurnError(Exception):
    """Others have kept the thread waiting for too long."""


class Turns:
    """Lets few threads work at once, so that their memory has a bound."""

    def __init__(self, most: int, longest_wait_seconds: float) -> None:
        self._free = threading.BoundedSemaphore(most)
        self._longest_wait_seconds = longest_wait_seconds

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take a turn for the block. Raises NoTurnError if none becomes free in time."""
        if not self._free.acquire(timeout=self._longest_wait_seconds):
            raise NoTurnError
        try:
            yield
        finally:
            self._free.release()
