"""Limits how many removable nodes are removed at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


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

    @property
    def size(self) -> int:
        """How many nodes are to be removed."""
        return len(self.nodes)


@dataclass(frozen=True, slots=True)
class RemovalBudgets:
    """How many nodes may be in removal at the same time."""

    parallelism: int
    drain_parallelism: int
    """How many of these nodes may have pods to move."""
    empty_in_progress: int = 0
    drain_in_progress: int = 0


@dataclass(slots=True)
class _Left:
    all_nodes: int
    drained: int
    can_overflow: bool = True
    """Whether one group, removed as a whole, may exceed the budgets, so that small groups cannot starve a large one."""

    def take(self, empty: int, drained: int) -> None:
        self.all_nodes -= empty + drained
        self.drained -= drained
        self.can_overflow = False


def within_budgets(
    empty: Sequence[GroupRemoval], drained: Sequence[GroupRemoval], budgets: RemovalBudgets
) -> tuple[tuple[GroupRemoval, ...], tuple[GroupRemoval, ...]]:
    """Return which of the nodes are removed now: whole groups first, then empty nodes, then drained ones.

    A group occurs at most once in each list. The rule is that of Cluster Autoscaler's `ScaleDownBudgetProcessor`, with
    one difference: after a whole group has exceeded the budgets, no other one does until fewer nodes are in removal.
    """
    left = _Left(
        all_nodes=budgets.parallelism - budgets.empty_in_progress - budgets.drain_in_progress,
        drained=budgets.drain_parallelism - budgets.drain_in_progress,
    )
    whole_empty = [one for one in empty if one.is_whole]
    whole_drained = {one.group: one for one in drained if one.is_whole}
    chosen_empty, chosen_drained = _whole_groups(whole_empty, whole_drained, left)
    left.drained = min(left.all_nodes, left.drained)
    chosen_drained += _whole_drained_groups(whole_drained, {one.group for one in whole_empty}, left)
    singles = _first(left.all_nodes, [one for one in empty if not one.is_whole])
    left.all_nodes -= sum(one.size for one in singles)
    drains = _first(min(left.all_nodes, left.drained), [one for one in drained if not one.is_whole])
    return (*chosen_empty, *singles), (*chosen_drained, *drains)


def _whole_groups(
    empty: Sequence[GroupRemoval], drained: Mapping[str, GroupRemoval], left: _Left
) -> tuple[list[GroupRemoval], list[GroupRemoval]]:
    """Choose among groups that are only removed as a whole and have empty nodes, together with their drained nodes."""
    chosen_empty: list[GroupRemoval] = []
    chosen_drained: list[GroupRemoval] = []
    for one in empty:
        other = drained.get(one.group)
        drains = other.size if other else 0
        exceeds = left.all_nodes < one.size + drains or left.drained < drains
        is_spent = left.all_nodes <= 0 or (drains > 0 and left.drained <= 0)
        if exceeds and (is_spent or not left.can_overflow):
            break
        if one.size + drains not in {one.target_size, one.registered}:
            continue
        chosen_empty.append(one)
        if other:
            chosen_drained.append(other)
        left.take(one.size, drains)
    return chosen_empty, chosen_drained


def _whole_drained_groups(
    drained: Mapping[str, GroupRemoval], decided: Iterable[str], left: _Left
) -> list[GroupRemoval]:
    """Choose among groups that are only removed as a whole and whose nodes are all drained."""
    chosen: list[GroupRemoval] = []
    done = frozenset(decided)
    for one in drained.values():
        if one.group in done:
            continue
        if left.drained < one.size and (left.drained <= 0 or not left.can_overflow):
            break
        if one.size not in {one.target_size, one.registered}:
            continue
        chosen.append(one)
        left.take(0, one.size)
    return chosen


def _first(budget: int, groups: Iterable[GroupRemoval]) -> list[GroupRemoval]:
    """Return the first nodes of these groups in order, as many as the budget allows."""
    chosen: list[GroupRemoval] = []
    for one in groups:
        if budget < 1:
            break
        chosen.append(one if one.size <= budget else replace(one, nodes=one.nodes[:budget]))
        budget -= chosen[-1].size
    return chosen
