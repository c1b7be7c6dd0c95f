"""Bounded waits for what other threads and processes bring about."""

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
    """Return the first result that is true. Raises AssertionError when none came in time.

    Pauses grow: what comes soon is seen at once, and waiting for what comes later leaves the processor to those who
    bring it about.
    """
    end, pause = time.monotonic() + seconds, _FIRST_PAUSE_SECONDS
    while not (result := condition()):
        assert time.monotonic() < end, f"not within {seconds} s: {condition}"
        time.sleep(pause)
        pause = min(1.3 * pause, _LONGEST_PAUSE_SECONDS)
    return result


def rounds(pause_seconds: float, seconds: float = math.inf) -> Iterator[int]:
    """Yield 1, 2 and so on, with a pause after each, until the time is over: for what is looked at or tried anew."""
    number, end = 1, time.monotonic() + seconds
    yield number
    while time.monotonic() < end:
        time.sleep(pause_seconds)
        number += 1
        yield number
