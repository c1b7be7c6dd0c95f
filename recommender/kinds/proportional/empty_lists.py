"""Determines whether an empty list is believed, because a list that is wrongly empty does the most harm."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.foundation.sources.kubernetes.lists.list_checks import CONFIRM_SECONDS


@dataclass(frozen=True, slots=True)
class EmptyLists:
    """For how long all lists have been empty, for a program that lists objects repeatedly."""

    since: float | None = None
    """The time of the first of these empty lists in monotonic seconds; None if the last list had objects."""

    def after(self, objects: int, now: float) -> EmptyLists:
        """Return the state after a list with this number of objects."""
        if objects:
            return EmptyLists()
        return self if self.since is not None else EmptyLists(now)

    def believes(self, objects: int, now: float) -> bool:
        """Return whether that list is believed: it has objects, or lists have been empty for at least half a minute."""
        return bool(objects) or (self.since is not None and now - self.since >= CONFIRM_SECONDS)
