"""Remembers, for removals of nodes that take minutes, when they began and how far they are.

The annotations and marks of nodes outlive a process; everything here begins anew after a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from recommender.kinds.cluster_size.node_groups.fields import text, texts
from recommender.kinds.cluster_size.scale_down.annotations import DELAY_DELETION
from recommender.running.sizes.evictable_pods import EVICTION_SECONDS, LONGEST_GRACE_SECONDS
from recommender.running.sizes.machine_deletion import UNCERTAIN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from adapter.foundation.time.clock import Clock
    from recommender.running.sizes.removal_marks import RemovalMark

DELAY_SECONDS: Final = 120.0
"""How long annotations delay a deletion after the last pod has gone (`--node-deletion-delay-timeout`)."""
SETTLE_SECONDS: Final = 5.0
"""The minimum time between cordoning and deleting a node, so that pods that were being bound to it are seen."""
ENDING_SECONDS: Final = EVICTION_SECONDS + LONGEST_GRACE_SECONDS + 30.0
"""How long all pods of a node may take to end."""
PROVIDER_SECONDS: Final = ENDING_SECONDS + DELAY_SECONDS + 2 * UNCERTAIN_SECONDS
"""How long a drained node waits for its provider, counted from its mark: some minutes however long draining took."""
_LONGEST_SECONDS: Final = PROVIDER_SECONDS + 30.0
MARKING_SECONDS: Final = 60.0
"""How long it may take until all nodes of a group are marked, one after the other."""


class RemovalTimes:
    """Measures how long ago the times of the marks of nodes are, also while the wall clock is set. Not thread-safe.

    A mark holds times of the wall clock, so that they outlive a process. If that clock were trusted, pods that are
    being bound to a cordoned node would not be waited for after it was set forward by a minute, and after it was set
    forward by a day, a node would take pods again although its machine is being deleted. So the wall clock counts only
    for the time before this process first saw a mark.
    """

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


class FirstPods:
    """Remembers which pods a node had when its removal began, to tell them from those that came to it afterwards."""

    def __init__(self) -> None:
        """Begin without nodes."""
        self._uids: dict[tuple[str, float], frozenset[str]] = {}
        """The UIDs of pods, by node and by the time that its mark holds."""

    def keep(self, names: Collection[str]) -> None:
        """Forget all other nodes."""
        self._uids = {key: uids for key, uids in self._uids.items() if key[0] in names}

    def of(
        self, name: str, since: float, pods: Iterable[Mapping[str, Any]], waited_seconds: float
    ) -> frozenset[str] | None:
        """Return the UIDs of a node's first pods; None while pods that were being bound to it may still come.

        `since` is the time that its mark holds: a node that is removed again has other first pods.

        `pods` are its present ones, and `waited_seconds` is the time since the node was marked. After a restart, those
        that are seen first count.
        """
        if waited_seconds < SETTLE_SECONDS:
            return None
        return self._uids.setdefault((name, since), frozenset(text(pod, "metadata", "uid") for pod in pods))


class DeletionDelays:
    """Lets programs finish with a drained node before its machine is deleted, if an annotation of the node asks for it.

    Such a program usually sets its annotation when the node joins, and takes it off once it has seen the taint of the
    removal and has done its work. So the removal must begin although the annotation is there.
    """

    def __init__(self) -> None:
        """Begin without nodes."""
        self._drained_at: dict[tuple[str, float], float] = {}
        """When nodes were drained, by node and by the time that its mark holds."""

    def keep(self, names: Collection[str]) -> None:
        """Forget all other nodes."""
        self._drained_at = {key: at for key, at in self._drained_at.items() if key[0] in names}

    def is_delayed(self, node: Mapping[str, Any], since: float, now: float) -> bool:
        """Return whether the deletion of a drained Node waits; `now` is monotonic.

        `since` is the time that its mark holds: a node that is removed again is waited for again.
        """
        drained_at = self._drained_at.setdefault((text(node, "metadata", "name"), since), now)
        asks = any(key.startswith(DELAY_DELETION) for key in texts(node, "metadata", "annotations"))
        return asks and now - drained_at < DELAY_SECONDS


class WholeRemovals:
    """Removes a group that has either no node or all of them: no node is deleted before all of them are drained.

    As in Cluster Autoscaler, all nodes stay if one of them cannot be drained.
    """

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
        """Return why a node must stay because another node of its group stays; empty if it need not.

        `waited_seconds` is the time since the node was marked.
        """
        if self._may_go(mark) or waited_seconds <= MARKING_SECONDS or len(self._members(mark)) >= mark.whole:
            return ""
        return f"the group {mark.group} goes as a whole or not at all, and another of its nodes stays"

    def waits(self, mark: RemovalMark) -> bool:
        """Return whether a drained node waits for others of its group."""
        members = self._members(mark)
        return not self._may_go(mark) and (len(members) < mark.whole or not self._drained.issuperset(members))

    def lateness(self, mark: RemovalMark, waited_seconds: float) -> str:
        """Return why a removal ends that has not led to a deletion so long after it began; empty if it may go on.

        While no recommender was there, the node may have got pods that nobody evicted. The nodes of a group whose
        deletion has begun follow it, however slowly its provider deletes one after the other.
        """
        if waited_seconds <= _LONGEST_SECONDS or (mark.whole and self._may_go(mark)):
            return ""
        return f"it could not be deleted within {waited_seconds:.0f} s"

    def _may_go(self, mark: RemovalMark) -> bool:
        """Return whether a node is removed by itself, or the deletion of its group has begun."""
        return not mark.whole or any(each.deleting_since is not None for each in self._members(mark).values())

    def _members(self, mark: RemovalMark) -> dict[str, RemovalMark]:
        group = (mark.recommendation, mark.provider, mark.group)
        return {
            name: each
            for name, each in self._marks.items()
            if each.whole and (each.recommendation, each.provider, each.group) == group
        }
