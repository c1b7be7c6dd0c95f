"""How many threads may wait for one slow thing at a time."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class WaiterLimit:
    """A bound on threads that wait; one more is refused at once, so that some stay free for everybody else."""

    def __init__(self, most: int, refusal: Callable[[], Exception]) -> None:
        """`refusal` makes the error for a thread that finds no room."""
        self._free = threading.BoundedSemaphore(most)
        self._refusal = refusal

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Count as waiting during the block; raises the refusal if too many wait already."""
        if not self._free.acquire(blocking=False):
            raise self._refusal()
        try:
            yield
        finally:
            self._free.release()
