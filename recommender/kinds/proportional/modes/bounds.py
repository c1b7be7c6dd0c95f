"""`min`, `max` and `preventSinglePointFailure` as cluster-proportional-autoscaler checks and applies them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from recommender.decisions.limits import Limit
from recommender.kinds.proportional.formulas import number_text
from recommender.kinds.proportional.modes.mode_definition import Flaw, Values

SPREAD_REPLICAS: Final = 2
"""The least number of replicas that `preventSinglePointFailure` demands."""


def min_of(values: Values) -> int:
    """Return the value of `min`, where 0 means 1."""
    return values.count("min") or 1


def flaws_of_bounds(values: Values) -> Iterator[Flaw]:
    """Yield the faults of `min` and `max`."""
    lowest, highest = values.count("min"), values.count("max")
    if lowest < 0:
        yield Flaw("min", f"`min` is {lowest}, which is negative", "write 1 or more")
    elif highest and highest < min_of(values):
        message = f"`max` is {highest}, less than `min`, which is {min_of(values)}"
        yield Flaw("max", message, "write at least `min`, or 0 for no limit")


def limits_of(lowest: int, highest: int) -> tuple[Limit, ...]:
    """Return the limits for a range of replicas; if `highest` is 0, there is no upper limit.

    cluster-proportional-autoscaler limits each component before it takes the largest. Limiting only the largest has the
    same result, since neither bound changes the order of values.
    """
    upper = (Limit("max", highest, is_upper=True, detail=f"max {highest}"),) if highest else ()
    return (*upper, Limit("min", lowest, is_upper=False, detail=f"min {lowest}"))


def at_least_two(nodes: float) -> tuple[Limit, ...]:
    """Return the limit of `preventSinglePointFailure`: two replicas if there are several nodes, even beyond `max`."""
    if nodes <= 1:
        return ()
    detail = f"at least {SPREAD_REPLICAS} on {number_text(nodes)} nodes"
    return (Limit("preventSinglePointFailure", SPREAD_REPLICAS, is_upper=False, detail=detail),)
