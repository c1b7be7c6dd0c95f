"""Shows the progress of a long benchmark on stderr, so that stdout has only the figures."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

_TICK_SECONDS = 0.5


class Progress:
    """Prints one line for each step and, on a terminal, a line that is updated while a step waits."""

    def __init__(self, name: str, stream: TextIO | None = None) -> None:
        self._name = name
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()

    def say(self, text: str) -> None:
        """Print a line."""
        self._wipe()
        print(f"{self._name}: {text}", file=self._stream, flush=True)

    def wait_until(self, moment: float, what: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Sleep until `moment` (monotonic seconds) and show how long that is; `meanwhile` is called now and then."""
        began = time.monotonic()
        while (left := moment - time.monotonic()) > 0:
            meanwhile()
            if self._live:
                done = time.monotonic() - began
                print(
                    f"\r\x1b[K{self._name}: {what}, {done:.0f} of {moment - began:.0f} s",
                    end="",
                    file=self._stream,
                    flush=True,
                )
            time.sleep(min(left, _TICK_SECONDS))
        self._wipe()

    def _wipe(self) -> None:
        if self._live:
            print("\r\x1b[K", end="", file=self._stream, flush=True)
