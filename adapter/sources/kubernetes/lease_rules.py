"""Who may lead by a Lease: decisions alone, without clock, network or threads.

The protocol is that of client-go's leader election (`k8s.io/client-go/tools/leaderelection`), so that both can hold one
Lease. An elector writes its name and how long it holds on; it renews that under the resourceVersion that it knows; it
takes over only what nobody has renewed for the whole of that time.

No two clocks are compared. How long another has been silent is measured by this process's clock, from the moment it
*had read* the newest record. How long this process itself may lead is measured from the moment *before* its last
renewal was sent, so whatever the way to the server takes shortens its own time and never another's.

At one moment at most one elector leads: it stops `renew_deadline_seconds` after that moment, all others wait for
`lease_seconds` from a later one. Clocks may differ in rate by the ratio of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from adapter.sources.kubernetes.errors import UnexpectedResponseError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_JITTER = 1.2
"""client-go's: a follower waits for 1 to 2.2 times the retry period."""
_REQUESTS_WITHIN_DEADLINE = 3
"""A renewal that hangs, a look at the Lease and a second renewal fit into the renew deadline."""
_SLACK_RATIO = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTiming:
    """How long a Lease is held, and how often it is renewed. Raises ValueError for times that cannot work."""

    lease_seconds: int = 15
    """How long the others wait after a renewal before one of them takes over."""
    renew_deadline_seconds: float = 10.0
    """For how long after its last renewal this process leads."""
    retry_seconds: float = 2.0
    """Between two renewals, or two looks at another's Lease."""

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.renew_deadline_seconds > _JITTER * self.retry_seconds > 0:
            raise ValueError(
                f"a Lease of {self.lease_seconds} s, renewed within {self.renew_deadline_seconds:g} s, tried each"
                f" {self.retry_seconds:g} s: the Lease must be longer than the deadline, and the deadline longer than"
                f" {_JITTER} times the retry period"
            )

    @property
    def request_seconds(self) -> float:
        """The most that one request may take."""
        return self.renew_deadline_seconds / _REQUESTS_WITHIN_DEADLINE

    @property
    def slack_seconds(self) -> float:
        """By how much clocks of two machines may drift apart during one Lease."""
        return _SLACK_RATIO * self.lease_seconds

    def delay(self, *, leads: bool, share: float) -> float:
        """Return the seconds until the next try; `share`, from 0 to 1, is the jitter."""
        return self.retry_seconds * (1.0 - 0.2 * share if leads else 1.0 + _JITTER * share)


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says of its holder: the part of its `spec` that client-go compares."""

    holder: str
    """Empty where nobody holds it."""
    lease_seconds: float
    acquire_time: str
    """RFC 3339 with microseconds, as `renew_time`; for people alone."""
    renew_time: str
    transitions: int
    """How often the holder has changed."""

    def spec(self) -> dict[str, Any]:
        """Return the fields as the API has them (`coordination.k8s.io/v1 LeaseSpec`)."""
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": int(self.lease_seconds),
            "acquireTime": self.acquire_time,
            "renewTime": self.renew_time,
            "leaseTransitions": self.transitions,
        }


def record_of(lease: Mapping[str, Any]) -> LeaseRecord:
    """Return what a Lease says; raises UnexpectedAnswerError for one that no API server would give."""
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
        raise UnexpectedResponseError("the Lease's spec is not of the form of coordination.k8s.io/v1")
    return found


@dataclass(frozen=True, slots=True)
class Read:
    """Look at the Lease."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create the Lease with this record."""

    record: LeaseRecord


@dataclass(frozen=True, slots=True)
class Write:
    """Replace the Lease that is known by one with this record."""

    lease: Mapping[str, Any]
    record: LeaseRecord

    def document(self) -> dict[str, Any]:
        """Return the object to send: what others keep in it stays."""
        return {**self.lease, "spec": {**(self.lease.get("spec") or {}), **self.record.spec()}}


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do: another holds the Lease."""


Action: TypeAlias = Read | Create | Write | Wait


@dataclass(frozen=True, slots=True)
class Standing:
    """What one elector knows, as an immutable value. Times are seconds of its own clock."""

    identity: str
    timing: LeaseTiming
    seen: LeaseRecord | None = None
    """The newest record that was read or written."""
    seen_at: float = 0.0
    """When it was read first; of an own one, when it was sent."""
    lease: Mapping[str, Any] | None = None
    """The newest version of the object; None: it must be read first."""
    is_absent: bool = False
    """Whether there is no such Lease."""
    renewed_at: float | None = None
    """The moment before the last renewal that was confirmed was sent; None: this process does not hold the Lease."""

    @property
    def leads_until(self) -> float | None:
        """When the leadership ends without a further renewal."""
        return None if self.renewed_at is None else self.renewed_at + self.timing.renew_deadline_seconds

    def leads(self, now: float) -> bool:
        """Whether this process leads."""
        return self.leads_until is not None and now < self.leads_until

    def may_write(self, now: float, seconds: float) -> bool:
        """Whether a write that begins now and takes so long ends before another may lead."""
        if self.renewed_at is None or not self.leads(now):
            return False
        return now + seconds + self.timing.slack_seconds < self.renewed_at + self.timing.lease_seconds

    def begun(self, now: float) -> Standing:
        """Begin a round: who leads renews what it knows, everybody else looks first."""
        return self if self.leads(now) else self.failed()

    def next_action(self, now: float, wall: datetime) -> Action:
        """Return what to do next in a round; `wall` is the time for people to read in the Lease."""
        if self.lease is None and not self.is_absent:
            return Read()
        if self._is_held_by_another(now):
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
        """Take in what was read, None for no such Lease; `now` is when it was there."""
        if lease is None:
            # Whoever held what was deleted knows nothing of it yet: its time is waited for all the same.
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
        """Take in what the Lease became by a write that was sent at `sent_at` and is confirmed `now`."""
        if record_of(lease).holder != self.identity:
            return self.observed(lease, now)
        return replace(self, seen=record_of(lease), seen_at=sent_at, lease=lease, is_absent=False, renewed_at=sent_at)

    def failed(self) -> Standing:
        """Forget which version the Lease has: a request was refused, or nobody knows what became of it."""
        return replace(self, lease=None, is_absent=False)

    def released(self, wall: datetime) -> Write | None:
        """Return the write that lets go of the Lease, as client-go does it; None where it is not held or not known."""
        if self.lease is None or self.seen is None or self.seen.holder != self.identity:
            return None
        micro_time = wall.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return Write(self.lease, LeaseRecord("", 1, micro_time, micro_time, self.seen.transitions))

    def _is_held_by_another(self, now: float) -> bool:
        if self.seen is None or self.seen.holder in {"", self.identity}:
            return False
        return now < self.seen_at + self.seen.lease_seconds
