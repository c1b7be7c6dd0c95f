"""Turns an amount of load into replicas."""

from __future__ import annotations

import math
from typing import Final

from adapter.foundation.objects.integers import INT32_MAX

MOST_REPLICAS: Final = INT32_MAX
"""The maximum of `spec.replicas`, which is an int32."""
_SLACK: Final = 1e-9
"""The rounding error that is tolerated, so that 0.3 / 0.1 gives 3 replicas."""


def replicas_for(amount: float, per_replica: float) -> int:
    """Return the replicas that an amount needs: rounded up, and at most the maximum of `spec.replicas`."""
    exact = amount / per_replica
    return MOST_REPLICAS if exact >= MOST_REPLICAS else max(0, math.ceil(exact - _SLACK * max(1.0, exact)))


def known_value(value: float | None) -> float | None:
    """Return the value if it is known: neither missing nor NaN nor infinite; else None."""
    return value if value is not None and math.isfinite(value) else None
