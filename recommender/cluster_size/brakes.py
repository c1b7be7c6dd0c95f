"""The brakes that all recommendations have, on the sizes of node groups: `maxStep`, `maxChangesPerHour`, `paused`.

A brake changes no group by itself: what stops an increase leaves the group as it is, and what stops a decrease keeps
its nodes. So a size that was recommended once, and that the group no longer has, is not written while it is paused.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from recommender.cluster_size.model.answer import SizeStep
from recommender.decisions.constraints import HOUR_SECONDS, step_limit
from recommender.decisions.pauses import active_pauses, stops
from recommender.decisions.settings import Direction
from recommender.decisions.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.cluster_size.model.answer import ClusterSizeAnswer, GroupSize, Removal
    from recommender.cluster_size.model.memory import ClusterSizeMemory
    from recommender.decisions.settings import Brakes

MAX_STEP: Final = "maxStep"
MAX_CHANGES: Final = "maxChangesPerHour"
PAUSED: Final = "paused"


@dataclass(frozen=True, slots=True)
class Braked:
    """An answer after the brakes."""

    answer: ClusterSizeAnswer
    holds: tuple[str, ...] = ()
    """What keeps a size or a node, and until when."""


def braked(
    answer: ClusterSizeAnswer,
    brakes: Brakes,
    memory: ClusterSizeMemory,
    now: float,
    all_or_nothing: frozenset[str] = frozenset(),
) -> Braked:
    """Return the answer with the sizes that the brakes let through, and a step for each size that one has changed.

    `all_or_nothing` are groups that have no node or all of them: a part of a step is no step for them.
    """
    holds: list[str] = []
    answer = _max_step(answer, brakes, all_or_nothing)
    changes = tuple(min(time, now) for time in memory.changes if time > now - HOUR_SECONDS)
    if (hold := _changes_hold(answer, brakes, memory, changes)) is not None:
        answer = _held(answer, memory.sizes, hold.sentence, MAX_CHANGES, up=True, down=True)
        holds.append(hold.until)
    pauses = active_pauses(brakes, (), now)
    if pauses:
        up, down = stops(pauses, Direction.UP), stops(pauses, Direction.DOWN)
        sentence = "; ".join(each.sentence for each in pauses)
        before = answer
        answer = _held(answer, {}, sentence, PAUSED, up=up, down=down)
        if answer is not before or (up and down):
            holds.append(sentence)
    return Braked(answer, tuple(holds))


@dataclass(frozen=True, slots=True)
class _ChangesHold:
    sentence: str
    until: str


def _changes_hold(
    answer: ClusterSizeAnswer, brakes: Brakes, memory: ClusterSizeMemory, changes: tuple[float, ...]
) -> _ChangesHold | None:
    limit = brakes.max_changes_per_hour
    if limit is None or len(changes) < limit or not _would_change(answer, memory.sizes):
        return None
    sentence = f"the sizes are kept after {len(changes)} changes in the last hour, of which {limit} are allowed"
    return _ChangesHold(sentence, f"{sentence}, until {rfc3339(changes[len(changes) - limit] + HOUR_SECONDS)}")


def _would_change(answer: ClusterSizeAnswer, sizes: Mapping[str, int]) -> bool:
    is_other = any(sizes.get(each.name, each.current) != each.recommended for each in answer.groups)
    return is_other or any(removal.is_due for removal in answer.removals)


def _max_step(answer: ClusterSizeAnswer, brakes: Brakes, all_or_nothing: frozenset[str]) -> ClusterSizeAnswer:
    """Limit for each group how far it grows, and how many of its nodes go, from its present size."""
    if brakes.max_step is None:
        return answer
    sizes: dict[str, int] = {}
    allowed: dict[str, int] = {}
    for group in answer.groups:
        if group.current is None:
            continue
        limit = step_limit(brakes.max_step, group.current)
        if group.recommended > group.current + limit:
            sizes[group.name] = group.current if group.name in all_or_nothing else group.current + limit
        allowed[group.name] = 0 if _is_split(group, limit, all_or_nothing) else limit
    return _changed(
        answer, sizes, _postponed(answer.removals, allowed, f"{MAX_STEP}: more nodes go later"), MAX_STEP, MAX_STEP
    )


def _is_split(group: GroupSize, limit: int, all_or_nothing: frozenset[str]) -> bool:
    return group.name in all_or_nothing and group.recommended - group.after_removals > limit


def _held(
    answer: ClusterSizeAnswer, sizes: Mapping[str, int], sentence: str, step: str, *, up: bool, down: bool
) -> ClusterSizeAnswer:
    """Keep the last sizes, or the present ones where none are remembered, in the directions that are stopped."""
    kept: dict[str, int] = {}
    for group in answer.groups:
        if group.current is None:
            continue
        last = sizes.get(group.name, group.current)
        value = min(group.recommended, max(last, group.current)) if up else group.recommended
        value = max(value, min(last, group.current)) if down and not group.is_left_out else value
        if value != group.recommended:
            kept[group.name] = value
    removals = _postponed(answer.removals, {}, sentence) if down else answer.removals
    return _changed(answer, kept, removals, step, sentence)


def _postponed(removals: Iterable[Removal], allowed: Mapping[str, int], reason: str) -> tuple[Removal, ...]:
    """Return the removals, of which no more are due than are allowed in each group."""
    left = Counter(allowed)
    found = []
    for removal in removals:
        if removal.is_due and left[removal.group] <= 0:
            removal = replace(removal, is_due=False, reason=reason)  # noqa: PLW2901 - the same removal, later
        elif removal.is_due:
            left[removal.group] -= 1
        found.append(removal)
    return tuple(found)


def _changed(
    answer: ClusterSizeAnswer, sizes: Mapping[str, int], removals: tuple[Removal, ...], step: str, sentence: str
) -> ClusterSizeAnswer:
    if not sizes and removals == answer.removals:
        return answer
    due = Counter(removal.group for removal in removals if removal.is_due)
    groups = tuple(_resized(group, sizes.get(group.name), due[group.name], sentence) for group in answer.groups)
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
        binding=step if steps else answer.binding,
        saved_per_hour=sum(known) if known and len(known) == len(prices) else None,
    )


def _resized(group: GroupSize, size: int | None, due: int, sentence: str) -> GroupSize:
    recommended = group.recommended if size is None else size
    if (recommended, recommended - due) == (group.recommended, group.after_removals):
        return group
    reason = f"{sentence}: {recommended} instead of {group.recommended}" if size is not None else sentence
    return replace(group, recommended=recommended, after_removals=recommended - due, reason=reason)
