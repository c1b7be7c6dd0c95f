"""Spot machines in a replay: when they are interrupted, and when none is available.

A recording shows neither. The operator states how often a machine is interrupted, and how long no machine is available
afterwards; the moments are drawn from a seeded random generator. Recovery works as in `run`: machines that do not
arrive within `maxNodeProvisionTime` are removed from the size of their group, which backs off, so that another group
grows meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Final

_HOUR_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class SpotMarket:
    """What the operator states about spot machines."""

    interruptions: Mapping[str, float]
    """Interruptions per node and hour, by group."""
    absence_seconds: float
    """How long after an interruption no further machine of the group is available."""
    seed: int = 0


@dataclass(slots=True)
class SpotMachines:
    """The spot machines of one simulation."""

    market: SpotMarket | None
    random: Random = field(init=False)
    _numbers: Iterator[int] = field(default_factory=count)
    _slots: dict[int, int] = field(default_factory=dict)
    """The slot of each machine, by its number."""
    _machines: dict[int, int] = field(default_factory=dict)
    """The number of the machine in each slot."""
    _absent_until: dict[str, float] = field(default_factory=dict)
    _deadlines: dict[int, float] = field(default_factory=dict)
    """The time until which a missing machine is waited for, by slot."""

    def __post_init__(self) -> None:
        """Seed the random generator."""
        self.random = Random(0 if self.market is None else self.market.seed)  # noqa: S311 - a simulation

    def is_spot(self, group: str) -> bool:
        """Whether nodes of a group are spot machines."""
        return self.market is not None and group in self.market.interruptions

    def absent_until(self, group: str) -> float:
        """Return when machines of a group are available again; -Inf if they always have been."""
        return self._absent_until.get(group, -math.inf)

    def began(self, slot: int, group: str, now: float) -> tuple[float, int] | None:
        """Note that a machine runs; return when it will be interrupted, and its number, or None if it never will be."""
        rate = 0.0 if self.market is None else self.market.interruptions.get(group, 0.0)
        if not rate:
            return None
        number = next(self._numbers)
        self._slots[number], self._machines[slot] = slot, number
        return now + self.random.expovariate(1.0) * _HOUR_SECONDS / rate, number

    def take_interrupted(self, number: int) -> int | None:
        """Return the slot of a machine that is interrupted; None if it was removed before."""
        return self._slots.get(number)

    def note_interruption(self, group: str, now: float) -> None:
        """Note that the provider has interrupted a machine of a group."""
        assert self.market is not None, "only stated groups are interrupted"
        self._absent_until[group] = now + self.market.absence_seconds

    def forget(self, slot: int) -> None:
        """Forget the removed machine of a slot."""
        number = self._machines.pop(slot, None)
        if number is not None:
            del self._slots[number]
        self._deadlines.pop(slot, None)

    def wait(self, slot: int, deadline: float) -> None:
        """Note that a requested machine has not arrived yet."""
        self._deadlines[slot] = deadline

    def deadline(self, slot: int) -> float | None:
        """Return the time until which a requested machine is waited for; None if it has arrived."""
        return self._deadlines.get(slot)

    def note_arrival(self, slot: int) -> None:
        """Note that a requested machine arrives after all."""
        del self._deadlines[slot]
