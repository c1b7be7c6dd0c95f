"""The two clocks of a process, as a value that is passed to code that needs the time, and moments on both clocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_SET_BACK_SECONDS: Final = 1.0
"""A wall clock that lost more than this has been set back; smaller differences are gradual corrections."""
_SET_FORWARD_SECONDS: Final = 1.0
"""A wall clock that gained more than this has been set forward; smaller differences add up until they count."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment on both clocks, in seconds."""

    monotonic: float
    wall: float

    def as_of(self, now: Moment) -> float:
        """Return the moment in Unix seconds by the wall clock as it is set now.

        After the wall clock has been set back, an earlier time would lie in the future, or seem more recent than it is.
        A wall clock that was set forward is believed, since the monotonic clock stops while the machine sleeps.
        """
        shown = now.wall - (now.monotonic - self.monotonic)
        return shown if self.wall - shown > _SET_BACK_SECONDS else self.wall


@dataclass(slots=True)
class ForwardSteps:
    """Notices that the wall clock has been set forward. For one thread."""

    _ahead: float | None = None
    """By how much the wall clock was ahead of the monotonic one when it was last set; None before the first call."""

    def seconds_since_last(self, now: Moment) -> float:
        """Return by how many seconds the wall clock was set forward since the last call; 0 if it was not.

        A machine that slept cannot be distinguished from that, since the monotonic clock stops meanwhile.
        """
        ahead = now.wall - now.monotonic
        gained = 0.0 if self._ahead is None else ahead - self._ahead
        if self._ahead is None or gained > _SET_FORWARD_SECONDS or gained < -_SET_BACK_SECONDS:
            self._ahead = ahead
        return gained if gained > _SET_FORWARD_SECONDS else 0.0


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock and the monotonic clock, in seconds; measure intervals with the monotonic one."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time

    def moment(self) -> Moment:
        """Return the current moment."""
        return Moment(self.monotonic(), self.wall())
