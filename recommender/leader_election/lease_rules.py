"""Determines which process may lead by a Lease. Pure: without clock, network or threads.

The protocol is that of leader election in client-go (`k8s.io/client-go/tools/leaderelection`), so that programs with
either implementation can share a Lease. An elector writes its identity and the duration of its Lease, and renews the
Lease with the resourceVersion that it knows. It takes over a Lease only if nobody has renewed the Lease for the whole
duration.

No two clocks are compared. The time without a renewal by another holder is measured by this process's clock, from the
moment *after* it read the newest record. The time for which this process itself may lead is measured from the moment
*before* its last renewal was sent, so the duration of a request only shortens its own time.

At most one elector leads at a time: the leader stops `renew_deadline_seconds` after it began its last renewal, and all
others wait for `lease_seconds` from a later moment. The rates of two clocks may differ by the ratio of these durations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from adapter.foundation.sources.kubernetes.errors import UnexpectedResponseError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_JITTER = 1.2
"""The jitter factor of client-go, with which a follower waits for 1 to 2.2 times the retry period."""
_REQUESTS_WITHIN_DEADLINE = 3
"""The number of requests that fit into the renew deadline: a renewal that hangs, a read, and a second renewal."""
_SLACK_RATIO = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTiming:
    """The duration of a Lease, and how often it is renewed. Raises ValueError for times that cannot work."""

    lease_seconds: int = 15
    """How long the other processes wait after a renewal before one of them may take over."""
    renew_deadline_seconds: float = 10.0
    """How long this process leads after its last renewal."""
    retry_seconds: float = 2.0
    """The time between two renewals, or between two reads of a Lease that another process holds, without jitter."""

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.renew_deadline_seconds > _JITTER * self.retry_seconds > 0:
            raise ValueError(
                f"a Lease of {self.lease_seconds} s, renewed within {self.renew_deadline_seconds:g} s, tried each"
                f" {self.retry_seconds:g} s: the Lease must be longer than the deadline, and the deadline longer than"
                f" {_JITTER} times the retry period"
            )

    @property
    def request_seconds(self) -> float:
        """The time limit of one request."""
        return self.renew_deadline_seconds / _REQUESTS_WITHIN_DEADLINE

    @property
    def slack_seconds(self) -> float:
        """How far the clocks of two machines may drift apart during one Lease."""
        return _SLACK_RATIO * self.lease_seconds

    def delay(self, *, leads: bool, share: float) -> float:
        """Return the seconds until the next attempt; `share`, from 0 to 1, is a random share of the jitter."""
        return self.retry_seconds * (1.0 - 0.2 * share if leads else 1.0 + _JITTER * share)


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The part of a Lease's `spec` that client-go compares."""

    holder: str
    """The identity of the holder; empty if there is none."""
    lease_seconds: float
    acquire_time: str
    """The time of acquisition in RFC 3339 with microseconds. Like `renew_time`, it is only meant for people."""
    renew_time: str
    transitions: int
    """The number of times that the holder has changed."""

    def spec(self) -> dict[str, Any]:
        """Return the record as fields of the API (`LeaseSpec` of `coordination.k8s.io/v1`)."""
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": int(self.lease_seconds),
            "acquireTime": self.acquire_time,
            "renewTime": self.renew_time,
            "leaseTransitions": self.transitions,
        }


def record_of(lease: Mapping[str, Any]) -> LeaseRecord:
    """Return the record of a Lease. Raises UnexpectedResponseError for an invalid Lease."""
    spec = lease.get("spec") or {}
    found = LeaseRecord(
        spec.get("holderIdentity") or "",
        spec.get("leaseDurationSeconds") or 0,
        spec.get("acquireTime") or "",
        spec.get("renewTime") or "",
        spec.get("leaseTransitions") or 0,
    )
    texts = (found.holder, found.acquire_time, found.renew_time)
    if not all(isinstance(text, str) for text in texts) or not all(
        type(number) is int for number in (found.lease_seconds, found.transitions)
    ):
        raise UnexpectedResponseError("the Lease's spec does not have the form of coordination.k8s.io/v1")
    return found


@dataclass(frozen=True, slots=True)
class Read:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create the Lease with this record."""

    record: LeaseRecord


@dataclass(frozen=True, slots=True)
class Write:
    """Replace the known version of the Lease with one that has this record."""

    lease: Mapping[str, Any]
    record: LeaseRecord

    def document(self) -> dict[str, Any]:
        """Return the object to send, in which all fields outside the record are unchanged."""
        return {**self.lease, "spec": {**(self.lease.get("spec") or {}), **self.record.spec()}}


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing, since another process holds the Lease."""


Action: TypeAlias = Read | Create | Write | Wait


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of one elector, as an immutable value. Times are in seconds of the clock of the elector."""

    identity: str
    timing: LeaseTiming
    seen: LeaseRecord | None = None
    """The newest record that was read or written."""
    seen_at: float = 0.0
    """When that record was first read or, if this process wrote it, when the write was sent."""
    lease: Mapping[str, Any] | None = None
    """The newest version of the object; None if it must be read first."""
    is_absent: bool = False
    """Whether the Lease is known not to exist."""
    renewed_at: float | None = None
    """When the last confirmed renewal was about to be sent; None if this process does not hold the Lease."""

    @property
    def leads_until(self) -> float | None:
        """When the leadership ends without a further renewal; None if this process does not hold the Lease."""
        return None if self.renewed_at is None else self.renewed_at + self.timing.renew_deadline_seconds

    def leads(self, now: float) -> bool:
        """Return whether this process leads."""
        return self.leads_until is not None and now < self.leads_until

    def may_write(self, now: float, seconds: float) -> bool:
        """Return whether a write that begins at `now` and takes `seconds` ends before another process may lead."""
        if self.renewed_at is None or not self.leads(now):
            return False
        return now + seconds + self.timing.slack_seconds < self.renewed_at + self.timing.lease_seconds

    def begun(self, now: float) -> Standing:
        """Return the state at the start of a round: a leader keeps the version that it knows; others forget theirs.

        So a leader renews that version at once, and all others first read the Lease.
        """
        return self if self.leads(now) else self.failed()

    def next_action(self, now: float, wall: datetime) -> Action:
        """Return the next action in a round; `wall` is the time that is written to the Lease for people."""
        if self.lease is None and not self.is_absent:
            return Read()
        if self._others_until is not None and now < self._others_until:
            return Wait()
        micro_time = wall.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        fresh = LeaseRecord(self.identity, self.timing.lease_seconds, micro_time, micro_time, 0)
        if self.lease is None or self.seen is None:
            return Create(fresh)
        if self.seen.holder == self.identity:
            kept = replace(fresh, acquire_time=self.seen.acquire_time or micro_time, transitions=self.seen.transitions)
            return Write(self.lease, kept)
        return Write(self.lease, replace(fresh, transitions=self.seen.transitions + 1))

    def observed(self, lease: Mapping[str, Any] | None, now: float) -> Standing:
        """Return the state after the Lease was read at `now`; `lease` is None if the Lease does not exist."""
        if lease is None:
            # The holder of the deleted Lease may not know that yet, so the rest of its time must pass.
            return replace(self, lease=None, is_absent=True, renewed_at=None)
        record = record_of(lease)
        return replace(
            self,
            seen=record,
            seen_at=now if record != self.seen else self.seen_at,
            lease=lease,
            is_absent=False,
            renewed_at=self.renewed_at if record.holder == self.identity else None,
        )

    def wrote(self, lease: Mapping[str, Any], sent_at: float, now: float) -> Standing:
        """Return the state after a write that was sent at `sent_at` and confirmed at `now`; `lease` is its result."""
        if record_of(lease).holder != self.identity:
            return self.observed(lease, now)
        return replace(self, seen=record_of(lease), seen_at=sent_at, lease=lease, is_absent=False, renewed_at=sent_at)

    def failed(self) -> Standing:
        """Return the state without a known version, because a request was refused or its outcome is unknown."""
        return replace(self, lease=None, is_absent=False)

    def release_write(self, wall: datetime) -> Write | None:
        """Return the write that releases the Lease as client-go does; None if it is not held or not known here."""
        if self.lease is None or self.seen is None or self.seen.holder != self.identity:
            return None
        micro_time = wall.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return Write(self.lease, LeaseRecord("", 1, micro_time, micro_time, self.seen.transitions))

    def seconds_to_next_round(self, now: float, share: float) -> float:
        """Return how many seconds to wait until the next round, which is no later than the end of the current Lease.

        `share`, from 0 to 1, is a random share of the jitter. client-go does not stop the wait of a follower at the end
        of the Lease, and so takes over up to 4.4 s later.
        """
        leads = self.leads(now)
        end = self.leads_until if leads else self._others_until
        delay = self.timing.delay(leads=leads, share=share)
        return delay if end is None or end <= now else min(delay, end - now)

    @property
    def _others_until(self) -> float | None:
        """When the Lease of another process ends without a further renewal; None if no other process holds it."""
        if self.seen is None or self.seen.holder in {"", self.identity}:
            return None
        return self.seen_at + self.seen.lease_seconds
