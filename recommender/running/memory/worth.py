"""Which changes of a memory are worth a write. Pure.

Every poll confirms the value and moves the times and capacities of a policy a little; a write for each would load the
API server. What must survive a restart as it is, such as a hold, is worth one at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from recommender.cluster_size.model.memory import ClusterSizeMemory
    from recommender.decisions.memory import Memory

_LEAST_TIME: Final = 1e9
"""Larger numbers in the memory of a policy are times, in seconds since the Unix epoch: since 2001."""
_HOLD: Final = "Until"
"""The name of the end of a hold ends so. A load may be as large as a time."""
_LEAST_CHANGE_RATIO: Final = 0.05
"""Of a capacity, or another number of a policy."""
_SAME_SECONDS: Final = 1.0


def is_worth_a_write(stored: Memory, newest: Memory) -> bool:
    """Return whether the next leader would decide otherwise by the newest memory than by the stored one."""
    replicas = None if newest.last is None else newest.last.replicas
    if (None if stored.last is None else stored.last.replicas) != replicas:
        return True
    if (stored.changes, stored.parameters, stored.rungs) != (newest.changes, newest.parameters, newest.rungs):
        return True
    if _size_facts(stored.cluster_size) != _size_facts(newest.cluster_size):
        return True
    return is_urgent(stored, newest) or _has_moved(stored, newest)


def _size_facts(memory: ClusterSizeMemory | None) -> tuple[object, ...]:
    """Return what the next leader must know of a cluster's size: all but the time of the last decision.

    Which nodes are simulated again only after a while is not stored.
    """
    if memory is None:
        return ()
    cool_downs = (memory.last_scale_up, memory.last_delete, memory.last_failure)
    asked = (memory.requested, memory.asked, memory.back_offs)
    return (memory.unneeded_since, cool_downs, asked, memory.sizes, memory.changes)


def is_urgent(stored: Memory, newest: Memory) -> bool:
    """Return whether a hold has begun or ended: its end is a time in the future, as of the last decision."""
    if stored.policy is newest.policy or not (stored.policy or newest.policy):
        return False
    now = 0.0 if newest.last is None else newest.last.decided
    for name in {**stored.policy, **newest.policy}:
        before, after = _held_until(stored, name, now), _held_until(newest, name, now)
        if abs(before - after) > _SAME_SECONDS:
            return True
    return False


def _held_until(memory: Memory, name: str, now: float) -> float:
    value = memory.policy.get(name, 0.0) if name.endswith(_HOLD) else 0.0
    return value if value >= _LEAST_TIME and value > now else 0.0


def _has_moved(stored: Memory, newest: Memory) -> bool:
    """Return whether a number has changed by more than a twentieth. Times of the past, and new names, do not count."""
    for name, value in newest.policy.items():
        before = stored.policy.get(name)
        if before is None or value >= _LEAST_TIME:
            continue
        if abs(value - before) > _LEAST_CHANGE_RATIO * max(abs(value), abs(before)):
            return True
    # Nothing at all is stored of a policy that has something to remember, or the other way round.
    return bool(stored.policy) != bool(newest.policy)
