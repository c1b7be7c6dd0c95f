"""Holds what cluster size recommendations remember from one decision to the next, also across restarts.

All times are Unix seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from recommender.decisions.memory import Amount, Count, KindMemory, Time

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_BACK_OFF_SECONDS: Final = 1800.0
"""The longest duration of a back-off."""
LATE: Final = 0.0
"""Stands for the time of a request whose nodes are late."""


class BackOff(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A group that failed to grow is left alone for a while."""

    until: Time
    duration_seconds: Amount
    failed_at: Time
    reason: str

    def not_in_future(self, now: float) -> BackOff:
        """Return a back-off that ends no later than one that begins now could: the clock may have been set back."""
        seconds = min(self.duration_seconds, LONGEST_BACK_OFF_SECONDS)
        return BackOff(min(self.until, now + seconds), seconds, min(self.failed_at, now), self.reason)


class RequestedNodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nodes that were requested and have not all arrived."""

    size: Count
    """How many nodes the group has once they have come: the size that was written, if it counts all nodes."""
    since: Time
    """When the nodes were requested; `LATE` if they are late and the group's size still counts them."""

    @property
    def are_late(self) -> bool:
        """Whether the nodes are late, so that nothing waits for them, although the group's size still counts them."""
        return self.since == LATE


class AskedSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A size of a group that this program began to write, while it is not known whether it was written."""

    size: Count
    before: Count
    """The size that the group had when the new size was decided."""
    since: Time
    removes: bool = False
    """Whether the new size removes nodes."""
    machines: tuple[str, ...] = ()
    """The provider ids of failed machines that the new size deletes; no node is removed with them."""


class WrittenSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last size that this program wrote to a group."""

    size: Count
    since: Time
    """When the size was requested."""
    drained_from: Count | None = None
    """The size before nodes began to be drained; None once that has changed the size, or if none are drained."""


class Absence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A time for which nothing is known of the cluster, because the API server was down or this program did not run."""

    since: Time
    until: Time


def known_seconds(absences: Iterable[Absence], since: float, until: float) -> float:
    """Return for how long the cluster was known between two times; negative if `until` is before `since`."""
    return until - since - sum(max(0.0, min(one.until, until) - max(one.since, since)) for one in absences)


class ClusterSizeMemory(KindMemory, frozen=True, tag="clusterSize"):
    """The memory of one recommendation."""

    unneeded_since: dict[str, Time] = msgspec.field(default_factory=dict)
    """Since when each node has been unneeded."""
    unremovable_until: dict[str, Time] = msgspec.field(default_factory=dict)
    """When each node that the simulation could not remove is simulated again."""
    last_scale_up: Time | None = None
    last_delete: Time | None = None
    last_failure: Time | None = None
    """When a removal last failed."""
    requested: dict[str, RequestedNodes] = msgspec.field(default_factory=dict)
    """The requested nodes by group, only if this program has written the size."""
    asked: dict[str, AskedSize] = msgspec.field(default_factory=dict)
    """The sizes that are being written, by group. They are stored before the write, so that they survive a process that
    is killed."""
    written: dict[str, WrittenSize] = msgspec.field(default_factory=dict)
    """The last written sizes, by group; groups whose size is being written are absent."""
    unsent: dict[str, Count] = msgspec.field(default_factory=dict)
    """The sizes that this process requests and of which nothing was sent so far, by the text of their target."""
    replaced: dict[str, AskedSize] = msgspec.field(default_factory=dict)
    """The sizes of `unsent` that the last decision replaced, by the text of their target. Each counts as a change until
    the next decision, which knows what was sent before that one took effect."""
    unregistered_since: dict[str, dict[str, Time]] = msgspec.field(default_factory=dict)
    """Since when each machine, by group and provider id, has been seen without a node in every decision."""
    deleted_machines: dict[str, Time] = msgspec.field(default_factory=dict)
    """When the deletion of a failed machine was requested last, by provider id."""
    back_offs: dict[str, BackOff] = msgspec.field(default_factory=dict)
    """The back-offs, by group."""
    sizes: dict[str, Count] = msgspec.field(default_factory=dict)
    """The last recommended sizes by group, for brakes and for a poll without inputs."""
    absences: tuple[Absence, ...] = ()
    """The latest absences, in order. Time limits do not include them."""

    def repaired(self, now: float) -> ClusterSizeMemory:
        """Return the memory without times in the future: a clock that was set back must not cause an early removal.

        A node that is recorded as unneeded since a future time counts as unneeded from now on. The same applies to
        cool-downs, requests and back-offs, which would otherwise stop changes for as long as the clock was ahead. A
        size that was requested at a future time was requested by a process with another clock, so before now.
        """
        return replace(
            self,
            unneeded_since={node: min(since, now) for node, since in self.unneeded_since.items()},
            last_scale_up=_not_after(self.last_scale_up, now),
            last_delete=_not_after(self.last_delete, now),
            last_failure=_not_after(self.last_failure, now),
            requested={name: replace(each, since=min(each.since, now)) for name, each in self.requested.items()},
            unregistered_since={
                name: {one: min(since, now) for one, since in its.items()}
                for name, its in self.unregistered_since.items()
            },
            deleted_machines={one: min(time, now) for one, time in self.deleted_machines.items()},
            asked={name: one if one.since <= now else replace(one, since=now - 1) for name, one in self.asked.items()},
            back_offs={name: each.not_in_future(now) for name, each in self.back_offs.items()},
            written={name: one for name, one in self.written.items() if one.since <= now},
            absences=tuple(each for each in self.absences if each.until <= now),
        )

    def prolonged(self, seconds: float) -> ClusterSizeMemory:
        """Return the memory with all times later by this time, so that each remains in order with the others."""

        def later(times: dict[str, float]) -> dict[str, float]:
            return {name: time + seconds for name, time in times.items()}

        def moved(time: float | None) -> float | None:
            return None if time is None else time + seconds

        return replace(
            self,
            unneeded_since=later(self.unneeded_since),
            unremovable_until=later(self.unremovable_until),
            last_scale_up=moved(self.last_scale_up),
            last_delete=moved(self.last_delete),
            last_failure=moved(self.last_failure),
            requested={
                name: each if each.are_late else replace(each, since=each.since + seconds)
                for name, each in self.requested.items()
            },
            asked={name: replace(one, since=one.since + seconds) for name, one in self.asked.items()},
            written={name: replace(one, since=one.since + seconds) for name, one in self.written.items()},
            replaced={target: replace(one, since=one.since + seconds) for target, one in self.replaced.items()},
            unregistered_since={name: later(its) for name, its in self.unregistered_since.items()},
            deleted_machines=later(self.deleted_machines),
            back_offs={
                name: replace(each, until=each.until + seconds, failed_at=each.failed_at + seconds)
                for name, each in self.back_offs.items()
            },
            absences=tuple(Absence(each.since + seconds, each.until + seconds) for each in self.absences),
        )

    @property
    def stored(self) -> ClusterSizeMemory:
        """Return what is stored: a restart simulates all nodes, and sees all machines without a node anew.

        Written sizes are left out, since earlier versions refuse a memory with a field that they do not know. Another
        process cannot know what was not sent.
        """
        return replace(self, unremovable_until={}, unregistered_since={}, written={}, unsent={}, replaced={})


def _not_after(time: float | None, now: float) -> float | None:
    return None if time is None else min(time, now)


def restore_memory(own: KindMemory | None) -> ClusterSizeMemory:
    """Return the memory; an empty one if there is none, or if another kind of recommendation left it."""
    return own if isinstance(own, ClusterSizeMemory) else ClusterSizeMemory()
