"""Turns the values of the drivers into one value, with a step for everything that changed it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.decisions.record import Step
from recommender.kinds.proportional.modes.bounds import SPREAD_REPLICAS, limits_of
from recommender.kinds.proportional.parameters import Interpolated, Linear

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from recommender.decisions.limits import Limit
    from recommender.kinds.proportional.parameters import Mode

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
            self.change(limit.name, limit.applied(self.value), limit.detail)


def limits_of_mode(mode: Mode | None) -> tuple[Limit, ...]:
    """Return the bounds that hold whatever the counts are, for sizes that are kept while these are unknown."""
    if not isinstance(mode, (Linear, Interpolated)):
        return ()
    exceeds = isinstance(mode, Linear) and mode.prevent_single_point_failure and mode.max == 1
    return limits_of(mode.min, SPREAD_REPLICAS if exceeds else mode.max)


def _driver(step: str) -> str:
    return step.rpartition("/")[2]
