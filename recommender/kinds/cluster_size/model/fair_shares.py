"""Shares of a bounded amount of work: each namespace gets an equal share, and unused shares go to the others."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def beyond_shares(costs: Iterable[tuple[str, int]], most: int) -> frozenset[int]:
    """Return the indexes of the items, given as namespace and cost, that get no turn within a total cost of `most`.

    Namespaces take turns, and the items of each keep their order, so no namespace gets less than its share because
    another one has many items.
    """
    turns: defaultdict[str, int] = defaultdict(int)
    ranked: list[tuple[int, int, int]] = []
    for number, (namespace, cost) in enumerate(costs):
        turns[namespace] += cost
        ranked.append((turns[namespace], number, cost))
    left = most
    beyond: set[int] = set()
    for _, number, cost in sorted(ranked):
        if cost <= left:
            left -= cost
        else:
            beyond.add(number)
    return frozenset(beyond)
