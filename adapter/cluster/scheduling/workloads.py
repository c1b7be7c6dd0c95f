"""Objects that make pods, and budgets that limit how many of them may be away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.cluster.state import ClusterPod
    from adapter.objects.selectors import Selector


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment, StatefulSet, ReplicaSet, ReplicationController, DaemonSet or Job."""

    kind: str
    namespace: str
    name: str
    uid: str
    replicas: int | None
    """`spec.replicas`, for a Job `spec.parallelism`; None where the kind has none (DaemonSet)."""
    template: ClusterPod | None
    """A pod as its template makes it, unbound, without a name of its own; None where the template cannot be used."""
    problem: str = ""
    """Why there is no template; empty if there is one."""


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """A PodDisruptionBudget."""

    namespace: str
    name: str
    selector: Selector | None
    """None selects no pod; an empty selector, all of the namespace."""
    disruptions_allowed: int
    """`status.disruptionsAllowed`."""
