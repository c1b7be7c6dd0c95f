"""An order of targets in which no namespace takes the places of another one.

It is used wherever only so many targets have room: a namespace with thousands of series, which any of its pods may
export, then gets no more places than others that want as many.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recommender.decisions.record import TargetReference


def in_fair_order(targets: Iterable[TargetReference]) -> list[TargetReference]:
    """Return the targets in rounds: the first of each namespace, then the second of each, and so on.

    Within a round and within a namespace the given order stays. So the first N targets are max-min fair: a namespace
    that lacks places has at least as many of them, less one, as any other.
    """
    places: defaultdict[str, int] = defaultdict(int)
    rounds: list[tuple[int, TargetReference]] = []
    for target in targets:
        rounds.append((places[target.namespace], target))
        places[target.namespace] += 1
    return [target for _, target in sorted(rounds, key=lambda each: each[0])]
