"""Bounded waits for what other threads and processes bring about."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def until(condition: Callable[[], T], seconds: float = 10.0) -> T:
    """Return the first result that is true. Raises AssertionError when none came in time."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, f"not within {seconds} s: {condition}"
        time.sleep(0.005)
    return result
