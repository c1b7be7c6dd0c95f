"""The largest value of the recent past, kept in as few entries as possible."""

from __future__ import annotations

from typing import TypeVar

_Value = TypeVar("_Value", int, float)


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
