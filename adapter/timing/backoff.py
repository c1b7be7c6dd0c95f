"""How long to wait before the next try, so that a server that comes back is not overrun by everybody at once."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_DOUBLINGS = 32
"""Past every bound in use; more would overflow a float some day."""


def backoff_seconds(failures: int, *, first_seconds: float, longest_seconds: float) -> float:
    """Return the wait after so many consecutive failures (from 1): doubled each time, up to the longest."""
    return min(longest_seconds, first_seconds * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))


@dataclass(slots=True)
class Backoff:
    """Exponential back-off with jitter: the wait is drawn from the upper part of a bound that doubles each time."""

    first_seconds: float = 0.5
    """The bound after one failure."""
    longest_seconds: float = 30.0
    jitter_ratio: float = 1.0
    """The part of the bound that is random: 1 draws any time up to the bound, 0 always takes all of it."""
    uniform: Callable[[float, float], float] = field(default=random.uniform, repr=False)
    failures: int = 0
    """Since the last `reset`."""

    def delay(self, at_least: float = 0.0) -> float:
        """Count a failure and return the seconds to wait; `at_least` is what the server asked for, if it did."""
        self.failures += 1
        bound = backoff_seconds(self.failures, first_seconds=self.first_seconds, longest_seconds=self.longest_seconds)
        return at_least + self.uniform(bound * (1.0 - self.jitter_ratio), bound)

    def reset(self) -> None:
        """Start anew, after a healthy time."""
        self.failures = 0
