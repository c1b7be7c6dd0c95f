"""The Lease, the identity of a candidate, and the events of an election."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Protocol

from recommender.leader_election.lease_rules import LeaseTiming


class LeaseEvents(Protocol):
    """Gets the events of an election, in the elector's own thread."""

    def acquired(self) -> None:
        """Handle that this process leads from now on."""
        ...

    def renewed(self, until: float) -> None:
        """Handle that this process leads until this time of the elector's clock, unless it releases the Lease first."""
        ...

    def lost(self) -> None:
        """Handle that this process no longer leads."""
        ...

    def failed(self, error: str) -> None:
        """Handle the failure of a request; `error` is the name of the error's class."""
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
    """Identity that no other process ever has; see `unique_identity`."""
    timing: LeaseTiming = field(default_factory=LeaseTiming)

    @property
    def collection(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"


def unique_identity(pod: str) -> str:
    """Return an identity that contains the pod's name, and that no other process has, not even after a restart."""
    return f"{pod}_{uuid.uuid4()}"
