"""What a process has decided last and whether it leads: one immutable value that every reader shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.decisions.record import Record


@dataclass(frozen=True, slots=True)
class Publication:
    """The result of the last poll."""

    leads: bool = False
    """Whether this process leads. A process that does not lead publishes no records."""
    leader: str = ""
    """Identity of the leader; empty if it is not known or if there is no Lease."""
    time: float | None = None
    """When the records were decided, in seconds since the Unix epoch; None before the first poll."""
    valid_until: float | None = None
    """When the records end to count if no further poll succeeds, in seconds since the Unix epoch."""
    records: tuple[Record, ...] = ()

    def is_valid(self, now: float) -> bool:
        """Whether the records still count at a time, in seconds since the Unix epoch."""
        return self.valid_until is not None and now <= self.valid_until
