"""Removes a group as a whole that has either no node or all of them: no node goes before all of them are drained.

As in Cluster Autoscaler, all nodes stay if one of them cannot be drained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.running.sizes.removal_marks import RemovalMark

MARKING_SECONDS: Final = 60.0
"""How long it may take until all nodes of a group are marked, one after the other."""


class WholeRemovals:
    """Compares the nodes of each group. After a restart, it is found anew which of them are drained."""

    def __init__(self) -> None:
        """Begin without nodes."""
        self._marks: Mapping[str, RemovalMark] = {}
        self._drained: set[str] = set()

    def see(self, marks: Mapping[str, RemovalMark]) -> None:
        """Take the marks of all nodes, by node."""
        self._marks = marks
        self._drained.intersection_update(marks)

    def note(self, name: str, *, is_drained: bool) -> None:
        """Note whether a node could be deleted now."""
        (self._drained.add if is_drained else self._drained.discard)(name)

    def obstacle(self, mark: RemovalMark, waited_seconds: float) -> str:
        """Return why a node must stay that another one of its group has left alone; empty if it need not.

        `waited_seconds` is the time since the node was marked.
        """
        if self._may_go(mark) or waited_seconds <= MARKING_SECONDS or len(self._members(mark)) >= mark.whole:
            return ""
        return f"the group {mark.group} goes as a whole or not at all, and another of its nodes stays"

    def waits(self, mark: RemovalMark) -> bool:
        """Return whether a drained node waits for others of its group."""
        members = self._members(mark)
        return not self._may_go(mark) and (len(members) < mark.whole or not self._drained.issuperset(members))

    def _may_go(self, mark: RemovalMark) -> bool:
        """Return whether a node goes by itself, or the deletion of its group has begun."""
        return not mark.whole or any(each.deleting_since is not None for each in self._members(mark).values())

    def _members(self, mark: RemovalMark) -> dict[str, RemovalMark]:
        group = (mark.recommendation, mark.provider, mark.group)
        return {
            name: each
            for name, each in self._marks.items()
            if each.whole and (each.recommendation, each.provider, each.group) == group
        }
