"""Ctrl-C, which ends the demo even if Python drops its exception.

An exception that a signal raises while a finalizer or a callback of the garbage collector runs is printed at best, and
then forgotten. So the signal is also remembered, and the loops of the demo check for it.
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
        """Remember the signal, and raise KeyboardInterrupt wherever the main thread is."""
        self._requested = True
        raise KeyboardInterrupt

    def sleep(self, seconds: float) -> None:
        """Sleep; raises KeyboardInterrupt if the signal has come, now or earlier."""
        time.sleep(seconds)
        if self._requested:
            raise KeyboardInterrupt
