"""A size on its way through all rules, and `min` and `max`: its bounds, which are applied last and always hold.

Bounds are applied after a calculation, and again after everything that follows it: brakes, holds, pauses and memories.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


class SizeTrail:
    """A size on its way through all rules: its value, the steps that led to it, and the last one that changed it."""

    def __init__(self, value: int, binding: str, steps: Sequence[Step]) -> None:
        """Begin with a value and the steps that led to it."""
        self.value = value
        self.binding = binding
        self.steps = list(steps)

    def change(self, name: str, value: int, detail: str) -> None:
        """Continue with this value; a rule that changes nothing leaves no step."""
        if value != self.value:
            self.value, self.binding = value, name
            self.steps.append(Step(name, value, detail))

    def raise_to(self, name: str, value: int, detail: str) -> None:
        """Continue with this value if it is larger."""
        if value > self.value:
            self.change(name, value, detail)

    def limit(self, limits: Iterable[Limit]) -> None:
        """Apply bounds in the given order."""
        for limit in limits:
            self.change(limit.name, limit.apply(self.value), limit.detail)


def within(limits: Iterable[Limit], value: int) -> tuple[int, tuple[Step, ...]]:
    """Return the value within all limits, and a step for each that has changed it."""
    trail = SizeTrail(value, "", ())
    trail.limit(limits)
    return trail.value, tuple(trail.steps)
