"""Determines which changes of a memory are significant enough to be written. Pure.

Every poll confirms the value and moves the times and capacities of a policy a little; a write after each poll would
load the API server. Facts that must survive a restart exactly, such as a hold, are worth a write at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from recommender.decisions.memory import Memory

_LEAST_CHANGE_RATIO: Final = 0.05
"""The smallest significant change of a capacity, or of another number that every decision changes."""
_SAME_SECONDS: Final = 1.0


def changed_enough_to_write(stored: Memory, newest: Memory) -> bool:
    """Return whether the next leader would decide differently with the newest memory than with the stored one."""
    if _facts(stored) != _facts(newest) or is_urgent(stored, newest) or _has_moved(stored, newest):
        return True
    return stored.by_target.keys() != newest.by_target.keys() or any(
        changed_enough_to_write(stored.by_target[target], memory) for target, memory in newest.by_target.items()
    )


def _facts(memory: Memory) -> tuple[object, ...]:
    """Return the facts that the next leader must know exactly; the times of decisions and most numbers are left out."""
    replicas = None if memory.last is None else memory.last.replicas
    # The number of objects is only for people; it matters whether there were any.
    return replicas, memory.changes, memory.known.keys(), None if memory.own is None else memory.own.facts


def is_urgent(stored: Memory, newest: Memory) -> bool:
    """Return whether a hold has begun, ended or changed its end.

    A hold whose end is not after the last decision has already ended.
    """
    if stored.own is newest.own:
        return False
    now = 0.0 if newest.last is None else newest.last.decided
    return abs(_held_until(stored, now) - _held_until(newest, now)) > _SAME_SECONDS


def _held_until(memory: Memory, now: float) -> float:
    until = None if memory.own is None else memory.own.held_until
    return until if until is not None and until > now else 0.0


def _has_moved(stored: Memory, newest: Memory) -> bool:
    """Return whether an amount has changed by more than a twentieth. New amounts do not count."""
    if stored.own is None or newest.own is None or stored.own is newest.own:
        return False
    before = stored.own.amounts
    return any(
        name in before and abs(amount - before[name]) > _LEAST_CHANGE_RATIO * max(amount, before[name])
        for name, amount in newest.own.amounts.items()
    )
