"""Ctrl-C, which ends the demo where it waits.

The handler only remembers the signal, and the waits of the demo check for it. An exception that a handler raises comes
at any instruction of any library: one that comes after a library has taken a lock, and before the block that releases
it, leaves the lock taken, and the interpreter then waits for it for ever when it ends. One that comes in a finalizer is
printed at best, and then forgotten.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


class Interruption:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self._requested = False

    def install(self) -> None:
        """Handle SIGINT; must be called in the main thread."""
        signal.signal(signal.SIGINT, self.request)

    def request(self, _number: int = signal.SIGINT, _frame: FrameType | None = None) -> None:
        """Remember the first signal; at a further one, raise KeyboardInterrupt wherever the main thread is."""
        if self._requested:
            raise KeyboardInterrupt
        self._requested = True

    def sleep(self, seconds: float) -> None:
        """Sleep; raises KeyboardInterrupt if the signal has come, now or earlier."""
        time.sleep(seconds)
        if self._requested:
            raise KeyboardInterrupt
