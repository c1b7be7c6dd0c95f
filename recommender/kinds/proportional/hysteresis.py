"""Keeps a size from following a count that swings around a rung."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.decisions.record import Step

_LARGEST: Final = Fraction(sys.float_info.max)


def raised(count: float, ratio: float) -> float:
    """Return `count / (1 - ratio)`: the count is below any rung above this number by more than `ratio` of the rung.

    The ratio is less than 1. A ratio such as 0.05 counts as the decimal that it prints as: 95 becomes 100.
    """
    return float(min(Fraction(count) / (1 - Fraction(repr(ratio))), _LARGEST))


def held(raw: Sequence[Step], from_raised_counts: Sequence[Step], memory: Mapping[str, int]) -> dict[str, int]:
    """Return each driver's value, which rises at once but falls only if the count is below the rung by the whole ratio.

    `from_raised_counts` are the steps of the same drivers from raised counts. `memory` holds the last values by driver.
    """
    lowest_held = {step.step: int(step.value) for step in from_raised_counts}
    values = {step.step: int(step.value) for step in raw}
    return {
        driver: max(value, min(memory.get(driver, value), lowest_held.get(driver, value)))
        for driver, value in values.items()
    }
