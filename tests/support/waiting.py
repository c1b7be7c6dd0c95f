"""Bounded waits for the results of other threads and processes."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.05


def until(condition: Callable[[], T], seconds: float = 20.0) -> T:
    """Return the first result that is true; raise AssertionError if there is none in time.

    Pauses grow: early results are seen at once, and the wait for late ones leaves the processor to those who work on
    them.
    """
    end, pause = time.monotonic() + seconds, _FIRST_PAUSE_SECONDS
    while not (result := condition()):
        assert time.monotonic() < end, f"not within {seconds} s: {condition}"
        time.sleep(pause)
        pause = min(1.3 * pause, _LONGEST_PAUSE_SECONDS)
    return result


def rounds(pause_seconds: float, seconds: float = math.inf) -> Iterator[int]:
    """Yield 1, 2 and so on, with a pause after each, until the time is over; use it to repeat checks or attempts."""
    number, end = 1, time.monotonic() + seconds
    yield number
    while time.monotonic() < end:
        time.sleep(pause_seconds)
        number += 1
        yield number
