"""The effect of the brakes on one amount of a container's sizes (pure)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.decisions.constraints.brakes import ChangeStop
    from recommender.decisions.policy_settings import MaxStep


def amount_within_step(wanted: int | None, base: int | None, step: MaxStep) -> int | None:
    """Return the amount, limited to the largest single change from `base`; unchanged if either is unknown."""
    if wanted is None or base is None:
        return wanted
    # The decimal digits of the ratio are used, so that 29% of 100 are 29.
    most = max(1, int(Fraction(repr(step.ratio or 0.0)) * base))
    return min(max(wanted, base - most), base + most)


def amount_when_stopped(wanted: int | None, base: int | None, stop: ChangeStop) -> int | None:
    """Return the amount, without changes from `base` in the directions that are stopped.

    If the amount or `base` is unknown while both directions are stopped, the result is unknown.
    """
    if wanted is None or base is None:
        return None if stop.up and stop.down else wanted
    kept = min(wanted, base) if stop.up else wanted
    return max(kept, base) if stop.down else kept
