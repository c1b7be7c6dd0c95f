"""A size on its way from the forecast through all rules, with a step for each rule that changed it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.record import Step

if TYPE_CHECKING:
    from collections.abc import Sequence


class SizeTrail:
    """A size, the steps that led to it, and the last one that changed it."""

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
