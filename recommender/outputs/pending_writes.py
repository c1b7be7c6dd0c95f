"""Determines which writes are due, at most one per target. Pure.

A pending write holds the size that a target should have, until it is done, too old, or superseded. A target keeps its
back-off when a newer decision replaces its write, so that decisions that change with every poll do not cause a storm of
calls while an API server fails. If the API server answered that it stored the former size, only the same write waits:
the answer says nothing about another size.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from adapter.foundation.time.backoff import Backoff
from adapter.foundation.time.due_queue import DueQueue
from recommender.decisions.record import Record, TargetAction, TargetReference
from recommender.outputs.scale_results import ScaleResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adapter.foundation.time.clock import Moment

_NO_PLACE_SECONDS = 0.25
"""Time after which a target whose last attempt failed is considered again if there was no room for an attempt."""


@dataclass(frozen=True, slots=True)
class MachineRemoval:
    """A Cluster API Machine that should be removed together with its node."""

    namespace: str
    name: str
    node: str


@dataclass(frozen=True, slots=True)
class NodeRemoval:
    """A node that is drained and then deleted through the provider of its group."""

    node: str
    whole: int = 0
    """How many nodes go together, if the group has either no node or all of them; 0 for any other group."""


@dataclass(frozen=True, slots=True)
class MachineToDelete:
    """A machine that has not become a node, and that its provider is asked to delete."""

    provider_id: str
    is_creation_error: bool = False
    """Whether it is deleted because its provider cannot create it, and so only while the provider states that."""


@dataclass(frozen=True, slots=True)
class StepLimit:
    """How far an amount may change at once from the one that is found when it is written."""

    ratio: float
    least: int = 0
    most: int | None = None
    """The least and the largest amount, which hold after any step; None if there is no largest one."""


@dataclass(frozen=True, slots=True)
class RequestedSize:
    """The amount of a resource that a container should have, in millicores or in bytes."""

    container: str
    resource: str
    amount: int
    step: StepLimit | None = None
    """None if the amount may be written as it is."""


@dataclass(frozen=True, slots=True)
class Resizing:
    """The requests that the containers of a workload should have, and the conditions under which they are written."""

    sizes: tuple[RequestedSize, ...]
    threshold_ratio: float
    """A change by no more than this share of the current request is not written."""
    in_place: bool
    up: bool
    """Whether requests may grow."""
    down: bool
    managers: tuple[str, ...]
    """Patterns of field managers: a template whose resources one of them owns is left alone. `*` matches any text."""
    limits: tuple[RequestedSize, ...] = ()
    """Limits with their own amounts. All others change in proportion to their requests."""


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """The size that a target should have and does not have yet."""

    recommendation: str
    target: TargetReference
    replicas: int
    valid_until: float
    """No call is sent after this time, in Unix seconds."""
    reason: str = ""
    """The message of the decision."""
    known_size: int | None = None
    """The size of the target when the write was decided; None if it does not matter. A node group that now has another
    size is not written. Any other target changes by no more than was decided, and not in the opposite direction."""
    removals: tuple[MachineRemoval, ...] = ()
    """For a node group: the Machines to mark for removal, one for each node by which the size is lowered."""
    node_removals: tuple[NodeRemoval, ...] = ()
    """For a provider's node group: the nodes whose removal begins, one for each node by which the size is lowered."""
    machines: tuple[MachineToDelete, ...] = ()
    """For a provider's node group: the failed machines to delete, one for each node by which the size is lowered."""
    waits_until: float = 0.0
    """Nothing is sent before this time, in Unix seconds, because a write of a former process may still
    be under way."""
    resizing: Resizing | None = None
    """The requests that are written instead of a number of replicas; None if replicas are written."""
    withdraws: bool = False
    """Whether a CapacityBuffer is set back to the size that it had before the first write."""
    unmarks: tuple[MachineRemoval, ...] = ()
    """For a node group: the Machines whose mark from an earlier removal is taken off first."""


@dataclass(frozen=True, slots=True)
class Start:
    """A write whose attempt begins now."""

    write: PendingWrite
    is_suspect: bool
    """Whether the last attempt for this target failed, other than by a size that was undone."""


@dataclass(slots=True)
class _Entry:
    backoff: Backoff
    write: PendingWrite | None = None
    expires: float = 0.0
    """Expiry on the monotonic clock, so that a wall clock that is set back cannot prolong a write."""
    running: PendingWrite | None = None
    undone: PendingWrite | None = None
    """The write of the last attempt, if the API server answered that the former size is still stored."""
    is_suspect: bool = False
    """Whether the last attempt failed otherwise, so that the next one may take long."""


@dataclass(slots=True)
class PendingWrites:
    """The pending writes. Not thread-safe: the caller must hold a lock."""

    count: Callable[[str, ScaleResult], None]
    """Called with the recommendation and the result of each write that ends without a call."""
    backoff: Callable[[], Backoff] = field(default=lambda: Backoff(1.0, 60.0, jitter_ratio=0.5))
    _entries: dict[TargetReference, _Entry] = field(default_factory=dict)
    _due: DueQueue[TargetReference] = field(default_factory=DueQueue)

    def put(self, write: PendingWrite, now: Moment) -> None:
        """Add a write, which replaces an older write for the same target."""
        entry = self._entries.get(write.target)
        if entry is None:
            entry = self._entries[write.target] = _Entry(self.backoff())
            self._due.set(write.target, now.monotonic)
        if entry.write is not None and not _same(entry.write, write):
            self._ended_without_call(entry, entry.write, ScaleResult.SUPERSEDED)
        if entry.undone is not None and not _same(entry.undone, write):
            self._begin_anew(entry, write.target, now)
        entry.write = write
        entry.expires = now.monotonic + max(0.0, write.valid_until - now.wall)

    def withdraw(self, keep: Callable[[PendingWrite], bool]) -> None:
        """Drop the pending writes for which `keep` returns False."""
        for target, entry in tuple(self._entries.items()):
            if entry.write is not None and not keep(entry.write):
                self._ended_without_call(entry, entry.write, ScaleResult.SUPERSEDED)
                if not entry.backoff.failures:
                    self._forget_if_idle(target, entry)

    def start(self, now: Moment, *, suspects_too: bool = True) -> Start | None:
        """Start the attempt of a write that is due, and return it; None if none is due.

        Without `suspects_too`, targets whose last attempt failed must wait, so that targets that hang leave room for
        the others.
        """
        while due := self._due.pop_due(now.monotonic, 1):
            target, entry = due[0], self._entries[due[0]]
            if entry.write is not None and self._is_over(entry, entry.write, now):
                self._ended_without_call(entry, entry.write, ScaleResult.EXPIRED)
            if entry.write is None:
                self._forget_if_idle(target, entry)
            elif entry.is_suspect and not suspects_too:
                self._due.set(target, now.monotonic + _NO_PLACE_SECONDS)
            else:
                entry.running = entry.write
                return Start(entry.write, entry.is_suspect)
        return None

    def may_send(self, write: PendingWrite, now: Moment) -> ScaleResult | None:
        """Return why the call of a running attempt may no longer be sent; None if it may."""
        entry = self._entries[write.target]
        if entry.write is None or not _same(entry.write, write):
            return ScaleResult.SUPERSEDED
        return ScaleResult.EXPIRED if self._is_over(entry, entry.write, now) else None

    def record_result(
        self,
        write: PendingWrite,
        result: ScaleResult,
        now: Moment,
        at_least_seconds: float = 0.0,
        *,
        is_outdated: bool = False,
        is_undone: bool = False,
    ) -> None:
        """Record the result of an attempt; `at_least_seconds` is the wait that the server asked for.

        A refusal ends the write just as a success does, and so does an outdated decision, which was made for another
        size: the next decision takes account of what prevented this one, and must not wait for a back-off. After a
        size that was undone, only the same write waits.
        """
        entry = self._entries[write.target]
        entry.running, entry.undone = None, write if is_undone else None
        is_current = entry.write is not None and _same(entry.write, write)
        is_answered = is_outdated or result in {ScaleResult.OK, ScaleResult.UNCHANGED, ScaleResult.REFUSED}
        if is_current and (is_answered or result is ScaleResult.EXPIRED):
            entry.write = None
        if is_answered or is_undone:
            entry.is_suspect = False
        if is_answered:
            entry.backoff.reset()
            self._due.set(write.target, now.monotonic)
            self._forget_if_idle(write.target, entry)
        elif result is ScaleResult.SUPERSEDED:
            self._due.set(write.target, now.monotonic)
        elif is_undone and entry.write is not None and not is_current:
            self._begin_anew(entry, write.target, now)
        else:
            entry.is_suspect = not is_undone
            self._due.set(write.target, now.monotonic + entry.backoff.delay(at_least_seconds))

    def next_due(self) -> float | None:
        """Return when the next attempt is due, on the monotonic clock; None if there is none."""
        return self._due.next_due()

    def __len__(self) -> int:
        """Return the number of targets that have a write, a running attempt, or a back-off."""
        return len(self._entries)

    def _begin_anew(self, entry: _Entry, target: TargetReference, now: Moment) -> None:
        """Let the next attempt of a target be due as soon as none is under way.

        Its back-off goes on if this size is undone as well, or sizes that alternate would be written without a pause.
        """
        entry.undone = None
        if entry.running is None:
            self._due.set(target, now.monotonic)

    @staticmethod
    def _is_over(entry: _Entry, write: PendingWrite, now: Moment) -> bool:
        return now.monotonic >= entry.expires or now.wall >= write.valid_until

    def _ended_without_call(self, entry: _Entry, write: PendingWrite, result: ScaleResult) -> None:
        """Forget the write of a target, and count its result unless a running attempt will report its own."""
        if entry.running is None or not _same(entry.running, write):
            self.count(write.recommendation, result)
        entry.write = None

    def _forget_if_idle(self, target: TargetReference, entry: _Entry) -> None:
        if entry.write is None and entry.running is None:
            self._entries.pop(target, None)
            self._due.discard(target)


def pending_writes_of(record: Record, valid_until: float) -> tuple[PendingWrite, ...]:
    """Return the writes that a record requests."""
    return tuple(
        PendingWrite(
            record.name,
            outcome.target,
            outcome.recommended_replicas,
            valid_until,
            record.message,
            known_size=outcome.current_replicas,
        )
        for outcome in record.targets
        if outcome.action is TargetAction.SCALE and outcome.recommended_replicas is not None
    )


def refused_targets(records: Iterable[Record]) -> tuple[tuple[str, TargetReference], ...]:
    """Return the recommendation and the target of each scale call that the records refuse."""
    return tuple(
        (record.name, outcome.target)
        for record in records
        for outcome in record.targets
        if outcome.action is TargetAction.REFUSED
    )


def _same(one: PendingWrite, other: PendingWrite) -> bool:
    """Return whether two writes are equal apart from their validity and reason."""
    return replace(one, valid_until=0.0, reason="") == replace(other, valid_until=0.0, reason="")
