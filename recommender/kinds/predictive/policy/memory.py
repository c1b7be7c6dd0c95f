"""The memory that sizes depend on besides the current situation. It survives restarts.

Times are Unix seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec.structs import replace

from recommender.decisions.memory import Amount, KindMemory, Time
from recommender.kinds.predictive.policy.arithmetic import MOST_REPLICAS

if TYPE_CHECKING:
    from collections.abc import Mapping

_Replicas = Annotated[int, msgspec.Meta(ge=0, le=MOST_REPLICAS)]


class ReconnectMemory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """The loads of the last minute, and the time until which a mass reconnect holds the capacity."""

    loads: tuple[tuple[Time, Amount], ...] = ()
    """Pairs (time, load), ascending in time and descending in load, that may still become the largest of the last
    minute."""
    held_until: Time | None = None


class SessionMemory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """How fast sessions end, measured on pods that take no new ones."""

    closed_pods: tuple[tuple[str, Amount], ...] = ()
    """Name and connections of the pods that were not ready at the last poll."""
    open_seconds: Amount = 0.0
    """The sum, over connections, of the seconds for which each was watched."""
    ended: Amount = 0.0
    """How many of these connections ended meanwhile."""


class PolicyMemory(KindMemory, frozen=True, tag="predictive"):
    """The memory of one target."""

    time: Time | None = None
    """The time of the last decision."""
    capacity: Annotated[float, msgspec.Meta(ge=0, le=MOST_REPLICAS)] | None = None
    """The size of the last decision before it was rounded up, which is the value that decays."""
    desired_sizes: tuple[tuple[Time, _Replicas], ...] = msgspec.field(default=(), name="wishes")
    """Pairs (time, replicas), ascending in time and descending in replicas, that may still become the largest of the
    window. Stored as `wishes`, their name in former versions, so that either version reads the other's."""
    reconnect: ReconnectMemory = ReconnectMemory()
    sessions: SessionMemory = SessionMemory()
    uid: str = ""
    """The UID of the object to which the size is written; empty if none is known."""
    is_complete: bool = False
    """Whether all decisions up to `time` are remembered. This is never stored: a stored memory may lack the last ones,
    because not every decision is worth a write."""

    is_unread: bool = False
    """Whether the size of the target, which is written, has not been known since the first decision or a gap. Then
    `capacity` is only that of the published size. This is never stored."""
    moved_seconds: float = 0.0
    """By how much the window and the hold were moved since `time` because the clock was set forward; never stored."""

    @property
    def stored(self) -> PolicyMemory:
        """Return the memory as one that may lack decisions, without the UID, which is stored beside it."""
        capacity = None if self.is_unread else self.capacity
        return replace(self, capacity=capacity, is_complete=False, is_unread=False, moved_seconds=0.0, uid="")

    @property
    def target_uid(self) -> str:
        """Return the UID of the object to which the size is written; empty if none is known."""
        return self.uid

    def about_target(self, uid: str) -> PolicyMemory:
        """Return the memory with the UID of that object."""
        return replace(self, uid=uid)

    def prolonged(self, seconds: float) -> PolicyMemory:
        """Return the memory with a window and a hold that end later by this time.

        The times of the last decision and of loads stay: a jump of the clock is like a gap in decisions.
        """
        until = self.reconnect.held_until
        return replace(
            self,
            desired_sizes=tuple((time + seconds, replicas) for time, replicas in self.desired_sizes),
            reconnect=replace(self.reconnect, held_until=None if until is None else until + seconds),
            moved_seconds=self.moved_seconds + seconds,
        )

    @property
    def facts(self) -> object:
        """Return the UID of the target alone, because every decision changes the numbers a little."""
        return PolicyMemory, self.uid

    @property
    def amounts(self) -> Mapping[str, float]:
        """Return the capacity, and the numbers from which the length of sessions is measured."""
        sessions = self.sessions
        found = {"capacity": self.capacity, "openSeconds": sessions.open_seconds, "ended": sessions.ended}
        known = {name: amount for name, amount in found.items() if amount}
        return known | {f"pod {name}": connections for name, connections in sessions.closed_pods}

    @property
    def held_until(self) -> float | None:
        """Return the end of the hold after a mass reconnect; None if there is no hold."""
        return self.reconnect.held_until


def restore_memory(own: KindMemory | None) -> PolicyMemory:
    """Return the memory; an empty one if it belongs to another kind or there is none."""
    return own if isinstance(own, PolicyMemory) else PolicyMemory()
