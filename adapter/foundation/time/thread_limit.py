"""A limit on the threads that use the same resource at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class ThreadLimitError(Exception):
    """As many threads as allowed are already inside."""


class ThreadLimit:
    """Limits how many threads are inside at once. Further threads are refused, immediately or after a short wait."""

    def __init__(self, most: int, refusal: Callable[[], Exception] = ThreadLimitError) -> None:
        """Admit up to `most` threads; `refusal` makes the error for any further one."""
        self._free = threading.BoundedSemaphore(most)
        self._refusal = refusal

    @contextmanager
    def entered(self, wait_seconds: float = 0.0, refusal: Callable[[], Exception] | None = None) -> Iterator[None]:
        """Count the thread as inside during the block.

        If no place becomes free within `wait_seconds`, raises the error of `refusal`, by default that of the limit.
        """
        if not self._free.acquire(timeout=max(0.0, wait_seconds)):
            refused = refusal or self._refusal
            raise refused()
        try:
            yield
        finally:
            self._free.release()
