"""Records when a request arrived and how often it is repeated; refreshes follow these intervals.

Nothing here is guarded by a lock, since every request notes its arrival. Two threads that note the same moment may lose
one interval, which the next request supplies.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

_INTERVALS_STANDING = 4
"""Number of intervals after which a request is forgotten."""
_BURST_SECONDS = 0.25
"""Arrivals this close together count as one: they come from two replicas of a requester, or from a retry."""
_REMEMBERED = 4
"""How many intervals are remembered: a stray request between two regular ones is forgotten after that many more."""
_MOST_PARTS = 32
"""Limit on the parts of one request whose intervals are known: autoscalers mostly have the same interval."""
_PART_SECONDS = 60.0
"""After this many seconds without an arrival, a part gives its place to another one."""


class Arrivals:
    """The arrivals of one request."""

    __slots__ = ("last", "recent")

    def __init__(self, now: float) -> None:
        self.last = now
        self.recent: tuple[float, ...] = ()

    def note(self, now: float, _part: Hashable = None) -> float:
        """Count an arrival; return the seconds since the previous one, infinite within the same burst."""
        interval = now - self.last
        if interval < _BURST_SECONDS:
            return math.inf
        self.recent = (interval, *self.recent[: _REMEMBERED - 1])
        self.last = now
        return interval

    def interval(self, now: float) -> float:
        """Seconds after which the request is repeated; infinite if it came only once.

        It is the shortest of the last few intervals. The time since the last request counts, too: a client that asked
        every second and stopped must not be served every second until its demand expires.
        """
        return max(min(self.recent, default=math.inf), now - self.last)

    def stands_until(self, once_seconds: float, longest_seconds: float) -> float:
        """Return when the request is to be forgotten unless it is repeated, in monotonic seconds.

        That is after four intervals, each as long as the longest of the last few; while fewer are known, not before
        `once_seconds`; and after `longest_seconds` at the latest.
        """
        seconds = _INTERVALS_STANDING * max(self.recent, default=0.0)
        if len(self.recent) < _REMEMBERED:
            seconds = max(seconds, once_seconds)
        return self.last + min(seconds, longest_seconds)


class ArrivalsByPart:
    """The arrivals of a request whose answer has parts that different clients ask for.

    A hundred autoscalers of a namespace share one request for its pods. Each asks for its own pods every 15 seconds, so
    that is the interval, and not the time between the requests of two autoscalers. Only `_MOST_PARTS` parts have their
    intervals recorded; the arrival of any other part only keeps the request in demand.
    """

    __slots__ = ("_others_last", "_parts", "last")

    def __init__(self, now: float, part: Hashable) -> None:
        self.last = now
        self._others_last = -math.inf
        """When a part whose interval is not known last arrived."""
        self._parts: dict[Hashable, Arrivals] = {part: Arrivals(now)}
        """The part whose last arrival is the longest ago comes first."""

    def note(self, now: float, part: Hashable) -> float:
        """Count an arrival of a part; return the seconds since its previous one, infinite if that is not known."""
        self.last = now
        known = self._parts.pop(part, None)
        if known is not None:
            self._parts[part] = known
            return known.note(now)
        if len(self._parts) >= _MOST_PARTS:
            oldest, arrivals = next(iter(list(self._parts.items())))
            if now - arrivals.last < _PART_SECONDS:
                self._others_last = now
                return math.inf
            self._parts.pop(oldest, None)
        self._parts[part] = Arrivals(now)
        return math.inf

    def interval(self, now: float) -> float:
        """Seconds after which the most frequently requested part is requested again; infinite if none came twice."""
        return min((part.interval(now) for part in list(self._parts.values())), default=math.inf)

    def stands_until(self, once_seconds: float, longest_seconds: float) -> float:
        """Return when all parts are to be forgotten unless one is repeated, in monotonic seconds."""
        others = self._others_last + min(once_seconds, longest_seconds)
        parts = list(self._parts.values())
        if not parts:
            # Its only part arrives at this moment, on another thread.
            return self.last + min(once_seconds, longest_seconds)
        return max(others, *(part.stands_until(once_seconds, longest_seconds) for part in parts))
