"""Determines how long to wait before a retry, so that a recovering server does not get all retries at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

_MOST_DOUBLINGS = 32
"""Largest exponent: large enough for every longest wait in use, and too small to overflow a float."""


def backoff_seconds(failures: int, *, first_seconds: float, longest_seconds: float) -> float:
    """Return the wait after that many consecutive failures (from 1); it doubles each time, up to `longest_seconds`."""
    return min(longest_seconds, first_seconds * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))


@dataclass(slots=True)
class Backoff:
    """Exponential back-off with jitter: each wait is random, up to a bound that doubles with each failure."""

    first_seconds: float = 0.5
    """Bound in seconds after the first failure."""
    longest_seconds: float = 30.0
    jitter_ratio: float = 1.0
    """Share of the bound that is random: with 1, the wait is any time up to the bound; with 0, it is the bound."""
    uniform: Callable[[float, float], float] = field(default=random.uniform, repr=False)
    failures: int = 0
    """Consecutive failures since the last `reset`."""

    def delay(self, at_least: float = 0.0) -> float:
        """Count a failure and return the seconds to wait; `at_least` is the wait that the server asked for, if any."""
        self.failures += 1
        bound = backoff_seconds(self.failures, first_seconds=self.first_seconds, longest_seconds=self.longest_seconds)
        return at_least + self.uniform(bound * (1.0 - self.jitter_ratio), bound)

    def reset(self) -> None:
        """Forget all failures after a success."""
        self.failures = 0
