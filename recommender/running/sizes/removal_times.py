"""Measures how long ago the times of marks are, also while the wall clock is set.

A mark holds times of the wall clock, so that they outlive a process. If that clock were trusted, pods that are being
bound to a cordoned node would not be waited for after it was set forward by a minute, and after it was set forward by a
day, a node would take pods again although its machine is being deleted. So the wall clock counts only for the time
before this process first saw a mark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from adapter.foundation.time.clock import Clock


class RemovalTimes:
    """The times of the marks of all nodes. Not thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: dict[tuple[str, float], float] = {}
        """Each time by the monotonic clock, by node and by the time that its mark holds."""

    def now(self, node: str) -> float:
        """Return the current time for the mark of a node."""
        now = self._clock.moment()
        self._began[node, now.wall] = now.monotonic
        return now.wall

    def seconds_since(self, node: str, time: float) -> float:
        """Return the seconds since a time that the mark of a node holds; 0 for a time in the future."""
        now = self._clock.moment()
        began = self._began.setdefault((node, time), now.monotonic - max(0.0, now.wall - time))
        return now.monotonic - began

    def keep(self, nodes: Collection[str]) -> None:
        """Forget the times of all other nodes."""
        self._began = {key: began for key, began in self._began.items() if key[0] in nodes}
