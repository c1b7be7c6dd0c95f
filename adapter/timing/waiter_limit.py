"""A limit on the threads that wait for the same slow resource."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class WaiterLimit:
    """A limit on waiting threads; further ones are refused at once, so that some threads stay free for other work."""

    def __init__(self, most: int, refusal: Callable[[], Exception]) -> None:
        """Make a limit; `refusal` makes the error for a thread beyond it."""
        self._free = threading.BoundedSemaphore(most)
        self._refusal = refusal

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Count the thread as waiting during the block; raises the refusal if too many threads are waiting."""
        if not self._free.acquire(blocking=False):
            raise self._refusal()
        try:
            yield
        finally:
            self._free.release()
