"""A limit on the threads that use the same resource at once."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class ThreadLimitError(Exception):
    """The limit of threads inside is already reached."""


class ThreadLimit:
    """Limits the threads that are inside at once. Further ones are refused, at once or after a short wait."""

    def __init__(self, most: int, refusal: Callable[[], Exception] = ThreadLimitError) -> None:
        """Make a limit; `refusal` makes the error for a thread beyond it."""
        self._free = threading.BoundedSemaphore(most)
        self._refusal = refusal

    @contextmanager
    def entered(self, wait_seconds: float = 0.0, refusal: Callable[[], Exception] | None = None) -> Iterator[None]:
        """Count the thread during the block.

        Raises the refusal (this one, or that of the limit) if no other thread leaves within the time.
        """
        if not self._free.acquire(timeout=max(0.0, wait_seconds)):
            refused = refusal or self._refusal
            raise refused()
        try:
            yield
        finally:
            self._free.release()
