"""An order of targets in which no namespace takes the places of another one.

It is used wherever the number of targets is limited: a namespace with thousands of series, which any of its pods may
export, then gets no more places than others that want as many.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from recommender.decisions.record import TargetReference

T = TypeVar("T")


def in_fair_order(targets: Iterable[TargetReference]) -> list[TargetReference]:
    """Return the targets in rounds of their namespaces, as `in_rounds` does."""
    return in_rounds(targets, lambda target: target.namespace)


def in_rounds(items: Iterable[T], namespace_of: Callable[[T], str]) -> list[T]:
    """Return the items in rounds: the first of each namespace, then the second of each, and so on.

    Within a round and within a namespace the given order stays. So the first N items are max-min fair: a namespace that
    lacks places has at most one place fewer than any other.
    """
    places: defaultdict[str, int] = defaultdict(int)
    rounds: list[tuple[int, T]] = []
    for item in items:
        namespace = namespace_of(item)
        rounds.append((places[namespace], item))
        places[namespace] += 1
    return [item for _, item in sorted(rounds, key=lambda each: each[0])]
