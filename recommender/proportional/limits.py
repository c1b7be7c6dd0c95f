"""From the values of the drivers to one value, with a step for everything that changed it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.decisions.record import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from recommender.proportional.modes.definition import Limit

LARGEST: Final = "largest"


class Trail:
    """A value on its way through the constraints."""

    def __init__(self, drivers: Sequence[Step]) -> None:
        """Begin with the largest of the drivers, of which there is at least one."""
        first = max(drivers, key=lambda step: step.value)
        detail = ", ".join(f"{_driver(step.step)} {step.value:.0f}" for step in drivers)
        self.value = int(first.value)
        self.binding = first.step
        self.steps: list[Step] = [*drivers, Step(LARGEST, self.value, detail)]

    def change(self, name: str, value: int, detail: str) -> None:
        """Go on with this value; a constraint that changes nothing leaves no step."""
        if value != self.value:
            self.value, self.binding = value, name
            self.steps.append(Step(name, value, detail))

    def hold(self, held: Mapping[str, int], ratio: float) -> None:
        """Go on with the values that hysteresis holds, by driver."""
        driver = max(held, key=lambda name: held[name])
        detail = f"{_driver(driver)} is not {ratio * 100:.6g} % below its rung yet"
        self.change("hysteresis", held[driver], detail)

    def limit(self, limits: Iterable[Limit]) -> None:
        """Apply bounds in their order."""
        for limit in limits:
            bounded = min(self.value, limit.bound) if limit.is_upper else max(self.value, limit.bound)
            self.change(limit.name, bounded, limit.detail)


def _driver(step: str) -> str:
    return step.rpartition("/")[2]
