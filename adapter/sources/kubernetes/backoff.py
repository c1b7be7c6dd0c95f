"""How long to wait before the next try, so that a server that comes back is not overrun by everybody at once."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True)
class Backoff:
    """Exponential back-off with full jitter: any time between nothing and a bound that doubles with each failure."""

    first_seconds: float = 0.5
    """The bound after one failure."""
    longest_seconds: float = 30.0
    uniform: Callable[[float, float], float] = field(default=random.uniform, repr=False)
    failures: int = 0
    """Since the last `reset`."""

    def delay(self, at_least: float = 0.0) -> float:
        """Count a failure and return the seconds to wait; `at_least` is what the server asked for, if it did."""
        bound = min(self.longest_seconds, self.first_seconds * 2.0 ** min(self.failures, 32))
        self.failures += 1
        return at_least + self.uniform(0.0, bound)

    def reset(self) -> None:
        """Start anew, after a healthy time."""
        self.failures = 0
