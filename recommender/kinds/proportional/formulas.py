"""Turns one count into a number of replicas: a ratio, the rungs of a ladder, or the lines between them.

Sources: `getExpectedReplicasFromParam` of the linear controller and `getExpectedReplicasFromEntries` of the ladder
controller in kubernetes-sigs/cluster-proportional-autoscaler.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from recommender.decisions.record import Step

if TYPE_CHECKING:
    from recommender.kinds.proportional.parameters import Rungs

_LARGEST: Final = 2.0**53
"""The largest result, even for a ratio close to 0. No workload has that many replicas, and floats are exact up to this
number."""


def number_text(value: float) -> str:
    """Return a finite number without a needless fraction: `16`, `2.5`."""
    return str(int(value)) if float(value).is_integer() and abs(value) <= _LARGEST else repr(value)


def by_ratio(driver: str, count: float, per_replica: float) -> Step:
    """Return count / ratio, rounded up; the ratio is larger than 0."""
    value = min(count / per_replica, _LARGEST)
    return Step(f"linear/{driver}", math.ceil(value), f"ceil({number_text(count)} / {number_text(per_replica)})")


def by_rungs(driver: str, count: float, rungs: Rungs) -> Step:
    """Return the replicas of the last rung whose threshold the count reaches; below the first rung, those of the first.

    An empty ladder results in 0.
    """
    return Step(f"ladder/{driver}", *_on_rung(count, rungs))


def between_rungs(driver: str, count: float, rungs: Rungs) -> Step:
    """Return the replicas on the line between the two rungs around the count, rounded up.

    Outside the ladder, the replicas are those of its first or its last rung.
    """
    name = f"interpolated/{driver}"
    above = _rungs_reached(count, rungs)
    if above in {0, len(rungs)} or rungs[above - 1][0] == count:
        return Step(name, *_on_rung(count, rungs))
    (low, few), (high, many) = rungs[above - 1], rungs[above]
    exact = few + (Fraction(count) - low) * (many - few) / (high - low)
    detail = f"ceil({few} + ({number_text(count)} - {low}) * ({many} - {few}) / ({high} - {low}))"
    return Step(name, math.ceil(exact), detail)


def _rungs_reached(count: float, rungs: Rungs) -> int:
    return bisect_right(rungs, count, key=lambda rung: rung[0])


def _on_rung(count: float, rungs: Rungs) -> tuple[int, str]:
    if not rungs:
        return 0, "the ladder is empty"
    reached = _rungs_reached(count, rungs)
    threshold, replicas = rungs[max(reached - 1, 0)]
    first = "" if reached else "below the first "
    return replicas, f"{first}rung [{threshold}, {replicas}] for {number_text(count)}"
