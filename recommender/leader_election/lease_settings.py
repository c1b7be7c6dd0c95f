"""The Lease, the identity of a candidate, and the events of an election."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Protocol

from recommender.leader_election.lease_rules import LeaseTiming


class LeaseEvents(Protocol):
    """Receives the events of an election, in the thread of the elector."""

    def acquired(self) -> None:
        """Handle that this process has become the leader."""
        ...

    def renewed(self, until: float) -> None:
        """Handle a renewal: this process leads until this time of the elector's clock, or until a release."""
        ...

    def lost(self) -> None:
        """Handle that this process no longer leads."""
        ...

    def failed(self, error: str) -> None:
        """Handle the failure of a request; `error` is the name of the class of the error."""
        ...


class NoEvents:
    """Ignores all events."""

    def acquired(self) -> None:
        """Do nothing."""

    def renewed(self, until: float) -> None:
        """Do nothing."""

    def lost(self) -> None:
        """Do nothing."""

    def failed(self, error: str) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """The Lease, and the identity of this candidate."""

    namespace: str
    name: str
    identity: str
    """An identity that no other process ever has (`unique_identity`)."""
    timing: LeaseTiming = field(default_factory=LeaseTiming)

    @property
    def collection(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"


def unique_identity(pod: str) -> str:
    """Return an identity that begins with the name of the pod and is unique to this process, even after a restart."""
    return f"{pod}_{uuid.uuid4()}"
