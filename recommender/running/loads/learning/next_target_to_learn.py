"""Decides which of the many targets of a recommendation is next (pure).

The target that has waited longest comes first, and among those without a turn so far, the one with the largest load. A
single target may have made a turn fail, so the targets of that turn have their next turns in smaller groups, between
the turns of other targets.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.running.loads.histories.target_loads import Target

MOST_AT_ONCE: Final = 200
_SMALLER: Final = 8
"""The size of a failed group is divided by this number."""
FAILED_GROUP_SECONDS: Final = 60.0
"""Time after which the parts of a failed group have their turns."""


class Turns:
    """The turns of the targets of one recommendation. Times are those of a monotonic clock."""

    def __init__(self) -> None:
        self._due: dict[Target, float] = {}
        self._most: dict[Target, int] = {}
        """For each target whose last turn failed: how many targets may share its next turn."""

    @property
    def are_all_served(self) -> bool:
        """Whether every target that was seen has had a turn."""
        return all(due > -math.inf for due in self._due.values())

    def is_anybody_due(self, targets: int, now: float) -> bool:
        """Return whether a turn may be due, with this number of targets; the check costs next to nothing."""
        return targets != len(self._due) or now >= min(self._due.values(), default=math.inf)

    def next_group(self, loads: Mapping[Target, float], now: float) -> tuple[Target, ...]:
        """Return the targets whose turn it is, none if no turn is due; targets without a load are forgotten."""
        self._due = {target: self._due.get(target, -math.inf) for target in loads}
        self._most = {target: most for target, most in self._most.items() if target in loads}
        due = sorted(
            (target for target, time in self._due.items() if time <= now),
            key=lambda target: (self._due[target], -loads[target]),
        )
        if not due:
            return ()
        most = self._most_with(due[0])
        return tuple(target for target in due if self._most_with(target) == most)[:most]

    def served(self, targets: Iterable[Target], next_at: float) -> None:
        """Note that targets have had their turn, and when the next one is due."""
        for target in targets:
            self._due[target] = next_at
            self._most.pop(target, None)

    def failed(self, targets: tuple[Target, ...], now: float, retry_seconds: float) -> None:
        """Note that the turn of a group failed; a target that fails alone has its next turn after `retry_seconds`."""
        seconds = retry_seconds if len(targets) == 1 else FAILED_GROUP_SECONDS
        for target in targets:
            self._due[target] = now + seconds
            self._most[target] = max(1, len(targets) // _SMALLER)

    def _most_with(self, target: Target) -> int:
        return self._most.get(target, MOST_AT_ONCE)
