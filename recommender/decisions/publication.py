"""The last decisions of a process, and whether the process leads, as one immutable value that all readers share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.decisions.record import Record


@dataclass(frozen=True, slots=True)
class Publication:
    """The result of the last poll."""

    leads: bool = False
    """Whether this process leads. A process that does not lead publishes no records."""
    leader: str = ""
    """The identity of the leader; empty if the leader is not known or if there is no Lease."""
    time: float | None = None
    """When the records were decided, in Unix seconds; None before the first poll."""
    valid_until: float | None = None
    """When the records cease to be valid if no further poll succeeds, in Unix seconds."""
    records: tuple[Record, ...] = ()
    has_expired: bool = False
    """Whether the records have expired because no further poll succeeded in time."""

    def is_valid(self, now: float) -> bool:
        """Return whether the records are still valid at `now`, in Unix seconds."""
        return self.valid_until is not None and now <= self.valid_until

    def as_of(self, now: float, *, leads: bool) -> Publication:
        """Return the publication without records if this process no longer leads or if they have expired at `now`."""
        if self.leads and not leads:
            # Its own process was the leader, and the next one is not known yet.
            return Publication()
        if self.leads and self.time is not None and not self.is_valid(now):
            return replace(self, records=(), has_expired=True)
        return self
