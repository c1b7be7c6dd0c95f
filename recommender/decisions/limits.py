"""`min` and `max`: bounds of a size that are applied last and always hold.

They are applied after a calculation, and again after everything that follows it: brakes, holds, pauses and memories.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recommender.decisions.record import Step


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound for the value. Limits apply in their order, so that a later one may override an earlier one."""

    name: str
    bound: int
    is_upper: bool
    detail: str

    def apply(self, value: int) -> int:
        """Return the value within the bound."""
        return min(value, self.bound) if self.is_upper else max(value, self.bound)


def range_limits(lowest: int, highest: int | None) -> tuple[Limit, ...]:
    """Return the limits of a range. `max` takes precedence over `min`; None means no upper limit."""
    lower = Limit("min", lowest, is_upper=False, detail=f"min {lowest}")
    return (lower,) if highest is None else (lower, Limit("max", highest, is_upper=True, detail=f"max {highest}"))


def within(limits: Iterable[Limit], value: int) -> tuple[int, tuple[Step, ...]]:
    """Return the value within all limits, and a step for each that has changed it."""
    steps: list[Step] = []
    for limit in limits:
        bounded = limit.apply(value)
        if bounded != value:
            value = bounded
            steps.append(Step(limit.name, value, limit.detail))
    return value, tuple(steps)
