"""Limits how many removable nodes are removed at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class GroupRemoval:
    """Removable nodes of one group, all of them with pods to be moved or all of them without."""

    group: str
    nodes: tuple[str, ...]
    is_whole: bool
    """Whether the group has either no node or all of them."""
    target_size: int
    registered: int
    """How many nodes of the group exist."""


@dataclass(slots=True)
class _Left:
    all_nodes: int
    drained: int
    can_overflow: bool = True
    """Whether one group, removed as a whole, may exceed the budgets, so that small groups cannot starve a large one."""


def within_budgets(
    empty: Iterable[GroupRemoval], drained: Iterable[GroupRemoval], most: int, most_drained: int
) -> list[str]:
    """Return which of the nodes are removed now: whole groups first, then empty nodes, then drained ones.

    `most` is how many nodes may be removed now, and `most_drained` how many of them may have pods to move; both are
    negative while more nodes are in removal than may be. A group occurs at most once in each list. The rule is that of
    Cluster Autoscaler's `ScaleDownBudgetProcessor`, with one difference: after a whole group has exceeded the budgets,
    no other one does until fewer nodes are in removal.
    """
    left = _Left(most, most_drained)
    whole = {one.group: one for one in drained if one.is_whole}
    with_empty = [
        (one, one.nodes, () if (other := whole.pop(one.group, None)) is None else other.nodes)
        for one in empty
        if one.is_whole
    ]
    chosen = list(_whole_groups(with_empty, left))
    chosen += _whole_groups([(one, (), one.nodes) for one in whole.values()], left)
    singles = _first(left.all_nodes, empty)
    return [*chosen, *singles, *_first(min(left.all_nodes - len(singles), left.drained), drained)]


def _whole_groups(groups: Iterable[tuple[GroupRemoval, Sequence[str], Sequence[str]]], left: _Left) -> Iterator[str]:
    """Yield the nodes of groups that are only removed as a whole, given with their empty and their drained nodes."""
    for group, empty, drained in groups:
        count, drains = len(empty) + len(drained), len(drained)
        exceeds = left.all_nodes < count or left.drained < drains
        is_spent = left.all_nodes <= 0 or (drains > 0 and left.drained <= 0)
        if exceeds and (is_spent or not left.can_overflow):
            break
        if count in {group.target_size, group.registered}:
            left.all_nodes -= count
            left.drained -= drains
            left.can_overflow = False
            yield from (*empty, *drained)


def _first(budget: int, groups: Iterable[GroupRemoval]) -> list[str]:
    """Return the first nodes of groups that may be split, as many as the budget allows."""
    return [name for one in groups if not one.is_whole for name in one.nodes][: max(0, budget)]
