"""Bounded waits for conditions."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def eventually(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Return as soon as the condition holds; fails the test if it does not within the time."""
    until = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < until, f"not within {seconds:g} s"
        pause.wait(0.02)
