"""The Lease, and the identity of a candidate."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from recommender.leader_election.lease_rules import LeaseTiming


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
