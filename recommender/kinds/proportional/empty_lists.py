"""Determines whether an empty list is believed: it is the most harmful error that a list can have."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.foundation.sources.kubernetes.lists.list_checks import CONFIRM_SECONDS


@dataclass(frozen=True, slots=True)
class EmptyLists:
    """Since when all lists have been empty, for a program that lists repeatedly."""

    since: float | None = None
    """The time in monotonic seconds; None if the last list had objects."""

    def after(self, objects: int, now: float) -> EmptyLists:
        """Return the state after a list with this number of objects."""
        if objects:
            return EmptyLists()
        return self if self.since is not None else EmptyLists(now)

    def believes(self, objects: int, now: float) -> bool:
        """Return whether that list is believed: an empty one is if a list half a minute before was also empty."""
        return bool(objects) or (self.since is not None and now - self.since >= CONFIRM_SECONDS)
