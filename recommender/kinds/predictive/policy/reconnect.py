"""A mass reconnect: many connections break at once and come back, which is not a fall in demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from recommender.kinds.predictive.policy.memory import ReconnectMemory

if TYPE_CHECKING:
    from recommender.kinds.predictive.predictive_settings import Connections


_Value = TypeVar("_Value", int, float)

FALL_SECONDS: Final = 60.0
"""The time within which the load must fall."""
_JUST_BEFORE: Final = 1e-6
"""The tolerance with which a load of exactly a minute ago still counts."""


def with_newest(
    entries: tuple[tuple[float, _Value], ...], now: float, value: _Value, oldest: float
) -> tuple[tuple[float, _Value], ...]:
    """Return the entries that may become the largest: those after `oldest` that exceed all later ones, and the new one.

    The first of them is the largest. An entry from the future, after the clock was set back, counts as one of now.
    """
    kept = []
    for time, each in entries:
        if each > value and time > oldest:
            kept.append((time, each) if time <= now else (now, each))
    kept.append((now, value))
    return tuple(kept)


def after_observed_load(memory: ReconnectMemory, settings: Connections, load: float, now: float) -> ReconnectMemory:
    """Return the memory after an observed load.

    A fall by `reconnectDrop` from the largest load of the last minute holds the capacity for `reconnectHold` from now
    on. The loads before it are forgotten, so that the same fall does not count again; another fall holds the
    capacity again.
    """
    # The clock may have been set back since.
    limit = now + settings.reconnect_hold_seconds
    held_until = None if memory.held_until is None or memory.held_until <= now else min(memory.held_until, limit)
    loads = with_newest(memory.loads, now, load, now - FALL_SECONDS - _JUST_BEFORE)
    largest = loads[0][1]
    # The tolerance is that of the arithmetic: 70 of 100 is a fall by 30%.
    if largest > 0 and load <= largest * (1 - settings.reconnect_drop_ratio) + 1e-9 * largest:
        return ReconnectMemory(((now, load),), limit)
    return ReconnectMemory(loads, held_until)
