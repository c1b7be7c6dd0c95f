"""Applies brakes to the sizes of node groups.

A brake changes no group by itself: one that stops an increase leaves the group unchanged, and one that stops a decrease
keeps its nodes. So an earlier recommended size that the group no longer has is not written while changes are paused.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from recommender.decisions.constraints.brakes import MAX_CHANGES, MAX_STEP, step_limit
from recommender.kinds.cluster_size.model.answer import SCALE_DOWN, SizeStep, savings_per_hour

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.constraints.brakes import ChangeStop
    from recommender.decisions.policy_settings import MaxStep
    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, FailedMachine, GroupSize, Removal


def would_change(answer: ClusterSizeAnswer, sizes: Mapping[str, int], allowed: Mapping[str, int]) -> bool:
    """Return whether the answer differs from the last sizes, or removes more nodes of a group than `allowed` states."""
    shown = (each for each in answer.groups if not each.is_left_out)
    is_other = any(sizes.get(each.name, each.current) != each.recommended for each in shown)
    return is_other or _with_fewer_removals(answer, allowed, MAX_CHANGES, MAX_CHANGES) is not answer


def within_step(answer: ClusterSizeAnswer, step: MaxStep, all_or_nothing: frozenset[str]) -> ClusterSizeAnswer:
    """Limit how far each group grows from its current size, and how many of its nodes are removed.

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
    later = (f"{MAX_STEP}: more machines are deleted later", f"{MAX_STEP}: more nodes are removed later")
    return _changed_answer(answer, _with_fewer_removals(answer, allowed, *later), sizes, MAX_STEP, MAX_STEP)


def _is_split(group: GroupSize, limit: int, all_or_nothing: frozenset[str]) -> bool:
    return group.name in all_or_nothing and group.recommended - group.after_removals > limit


def hold_stopped_directions(
    answer: ClusterSizeAnswer, stop: ChangeStop, sizes: Mapping[str, int], allowed: Mapping[str, int]
) -> ClusterSizeAnswer:
    """In each stopped direction, keep the last sizes, given as `sizes`; a group without one keeps its current size.

    No more nodes of a group are removed than `allowed` states.
    """
    kept: dict[str, int] = {}
    for group in answer.groups:
        if group.current is None:
            continue
        last = sizes.get(group.name, group.current)
        value = min(group.recommended, max(last, group.current)) if stop.up else group.recommended
        value = max(value, min(last, group.current)) if stop.down else value
        if value != group.recommended:
            kept[group.name] = value
    postponed = _with_fewer_removals(answer, allowed, stop.sentence, stop.sentence) if stop.down else answer
    return _changed_answer(answer, postponed, kept, stop.name, stop.sentence)


def _with_fewer_removals(
    answer: ClusterSizeAnswer, allowed: Mapping[str, int], of_machines: str, of_removals: str
) -> ClusterSizeAnswer:
    """Return the answer, in which each group loses no more failed machines and nodes together than `allowed` states.

    Machines come first. The answer is the same object if nothing is postponed.
    """
    left = Counter(allowed)

    def is_late(one: Removal | FailedMachine) -> bool:
        left[one.group] -= one.is_due
        return one.is_due and left[one.group] < 0

    machines = tuple(one.as_waiting(of_machines) if is_late(one) else one for one in answer.failed_machines)
    removals = tuple(replace(one, is_due=False, reason=of_removals) if is_late(one) else one for one in answer.removals)
    if machines == answer.failed_machines and removals == answer.removals:
        return answer
    return replace(answer, failed_machines=machines, removals=removals)


def _changed_answer(
    before: ClusterSizeAnswer, postponed: ClusterSizeAnswer, sizes: Mapping[str, int], step: str, sentence: str
) -> ClusterSizeAnswer:
    """Return the answer with these sizes, and with groups that keep the nodes whose removal is postponed."""
    if not sizes and postponed.removals == before.removals:
        return postponed
    due = Counter(removal.group for removal in postponed.removals if removal.is_due)
    groups = tuple(_resized_group(group, sizes.get(group.name), due[group.name], sentence) for group in before.groups)
    steps = tuple(
        SizeStep(step, group.name, sizes[group.name], f"{sizes[group.name]} instead of {group.recommended}: {sentence}")
        for group in before.groups
        if group.name in sizes
    )
    return replace(
        postponed,
        groups=groups,
        steps=(*before.steps, *steps),
        binding=step if steps or before.binding == SCALE_DOWN else before.binding,
        saved_per_hour=savings_per_hour(postponed.removals),
    )


def _resized_group(group: GroupSize, size: int | None, due: int, sentence: str) -> GroupSize:
    recommended = group.recommended if size is None else size
    if (recommended, recommended - due) == (group.recommended, group.after_removals):
        return group
    reason = f"{sentence}: {recommended} instead of {group.recommended}" if size is not None else sentence
    return replace(group, recommended=recommended, after_removals=recommended - due, reason=reason)
