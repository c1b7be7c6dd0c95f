"""Applies brakes to the sizes of node groups.

A brake changes no group by itself: one that stops an increase leaves the group unchanged, and one that stops a decrease
keeps its nodes. So an earlier recommended size that the group no longer has is not written while changes are paused.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from recommender.decisions.constraints.brakes import MAX_STEP, step_limit
from recommender.kinds.cluster_size.model.answer import SCALE_DOWN, SizeStep

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.decisions.constraints.brakes import ChangeStop
    from recommender.decisions.policy_settings import MaxStep
    from recommender.kinds.cluster_size.model.answer import (
        ClusterSizeAnswer,
        FailedMachine,
        GroupSize,
        Removal,
    )


def would_change(answer: ClusterSizeAnswer, sizes: Mapping[str, int]) -> bool:
    """Return whether the answer differs from the last sizes, or removes nodes."""
    is_other = any(sizes.get(each.name, each.current) != each.recommended for each in answer.groups)
    has_removals = any(removal.is_due for removal in answer.removals)
    return is_other or has_removals or any(machine.is_due for machine in answer.failed_machines)


def within_step(answer: ClusterSizeAnswer, step: MaxStep, all_or_nothing: frozenset[str]) -> ClusterSizeAnswer:
    """Limit how far each group grows from its present size, and how many of its nodes are removed.

    `all_or_nothing` are groups that have no node or all of them: they never take a part of a step.
    """
    sizes: dict[str, int] = {}
    allowed: dict[str, int] = {}
    for group in answer.groups:
        if group.current is None:
            continue
        limit = step_limit(step, group.current)
        if group.recommended > group.current + limit:
            sizes[group.name] = group.current if group.name in all_or_nothing else group.current + limit
        allowed[group.name] = 0 if _is_split(group, limit, all_or_nothing) else limit
    answer, allowed = _postpone_machines(answer, allowed, f"{MAX_STEP}: more machines are deleted later")
    return _changed_answer(
        answer,
        sizes,
        _postpone_removals(answer.removals, allowed, f"{MAX_STEP}: more nodes are removed later"),
        MAX_STEP,
        MAX_STEP,
    )


def _is_split(group: GroupSize, limit: int, all_or_nothing: frozenset[str]) -> bool:
    return group.name in all_or_nothing and group.recommended - group.after_removals > limit


def stopped(answer: ClusterSizeAnswer, stop: ChangeStop, sizes: Mapping[str, int]) -> ClusterSizeAnswer:
    """In each stopped direction, keep the last sizes, given as `sizes`; a group without one keeps its present size."""
    kept: dict[str, int] = {}
    for group in answer.groups:
        if group.current is None:
            continue
        last = sizes.get(group.name, group.current)
        value = min(group.recommended, max(last, group.current)) if stop.up else group.recommended
        value = max(value, min(last, group.current)) if stop.down and not group.is_left_out else value
        if value != group.recommended:
            kept[group.name] = value
    removals = _postpone_removals(answer.removals, {}, stop.sentence) if stop.down else answer.removals
    if stop.down:
        answer, _ = _postpone_machines(answer, {}, stop.sentence)
    return _changed_answer(answer, kept, removals, stop.name, stop.sentence)


def _postpone_machines(
    answer: ClusterSizeAnswer, allowed: Mapping[str, int], reason: str
) -> tuple[ClusterSizeAnswer, dict[str, int]]:
    """Return the answer, in which each group loses no more failed machines than `allowed` states, and what is left."""
    left = Counter(allowed)
    found: list[FailedMachine] = []
    for one in answer.failed_machines:
        is_late = one.is_due and left[one.group] <= 0
        found.append(one.waiting(reason) if is_late else one)
        left[one.group] -= one.is_due and not is_late
    machines = tuple(found)
    return answer if machines == answer.failed_machines else replace(answer, failed_machines=machines), dict(left)


def _postpone_removals(removals: Iterable[Removal], allowed: Mapping[str, int], reason: str) -> tuple[Removal, ...]:
    """Return the removals; in each group, only as many as `allowed` states remain due."""
    left = Counter(allowed)
    found: list[Removal] = []
    for removal in removals:
        is_late = removal.is_due and left[removal.group] <= 0
        found.append(replace(removal, is_due=False, reason=reason) if is_late else removal)
        if removal.is_due and not is_late:
            left[removal.group] -= 1
    return tuple(found)


def _changed_answer(
    answer: ClusterSizeAnswer, sizes: Mapping[str, int], removals: tuple[Removal, ...], step: str, sentence: str
) -> ClusterSizeAnswer:
    if not sizes and removals == answer.removals:
        return answer
    due = Counter(removal.group for removal in removals if removal.is_due)
    groups = tuple(_resized_group(group, sizes.get(group.name), due[group.name], sentence) for group in answer.groups)
    steps = tuple(
        SizeStep(step, group.name, sizes[group.name], f"{sizes[group.name]} instead of {group.recommended}: {sentence}")
        for group in answer.groups
        if group.name in sizes
    )
    prices = [removal.saved_per_hour for removal in removals if removal.is_due]
    known = [price for price in prices if price is not None]
    return replace(
        answer,
        groups=groups,
        removals=removals,
        steps=(*answer.steps, *steps),
        binding=step if steps or answer.binding == SCALE_DOWN else answer.binding,
        saved_per_hour=sum(known) if known and len(known) == len(prices) else None,
    )


def _resized_group(group: GroupSize, size: int | None, due: int, sentence: str) -> GroupSize:
    recommended = group.recommended if size is None else size
    if (recommended, recommended - due) == (group.recommended, group.after_removals):
        return group
    reason = f"{sentence}: {recommended} instead of {group.recommended}" if size is not None else sentence
    return replace(group, recommended=recommended, after_removals=recommended - due, reason=reason)
