"""Numbers as the HPA controller holds them: int64 thousandths, int32 replicas, float64 ratios.

The controller divides integers in some places and floats in others, and the difference can decide between 3 and 4
replicas. Values whose overflow is undefined in Go are capped here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from adapter.foundation.objects.integers import INT32_MAX

INT32_MIN: Final = -(2**31)


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far usage may be from its target, as a share of the target, before the number of replicas changes."""

    up: float = 0.1
    down: float = 0.1

    def hold(self, ratio: float) -> bool:
        """Return whether the ratio of usage to target is within tolerance of 1, both ends of the range included."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


def quotient(dividend: int, divisor: int) -> int:
    """Return the quotient as Go divides integers: truncated toward zero."""
    magnitude = abs(dividend) // abs(divisor)
    return magnitude if (dividend < 0) == (divisor < 0) else -magnitude


def ratio_of(usage: int, target: int) -> float:
    """Return usage / target, both rounded to float64 before the division, as Go does."""
    return float(usage) / float(target)


def whole_replicas(count: float) -> int:
    """Return the number of replicas, rounded up and limited to int32."""
    if count >= INT32_MAX:
        return INT32_MAX
    return max(math.ceil(count), INT32_MIN) if count > INT32_MIN else INT32_MIN
