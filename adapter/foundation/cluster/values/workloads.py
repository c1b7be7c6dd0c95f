"""Objects that create pods, and budgets that limit how many of the pods may be disrupted at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.pods import ClusterPod
    from adapter.foundation.objects.selectors import Selector


@dataclass(frozen=True, slots=True)
class WorkloadFacts:
    """A Deployment, StatefulSet, ReplicaSet, ReplicationController, DaemonSet or Job."""

    kind: str
    namespace: str
    name: str
    uid: str
    replicas: int | None
    """`spec.replicas`, or `spec.parallelism` for a Job; None if the kind has none (DaemonSet)."""
    template: ClusterPod | None
    """A pod as its template makes it, unbound, without a name of its own; None if the template cannot be used. The
    template of a Deployment is that of its newest ReplicaSet, which is also its controller. Claims that are made with
    the pod (`volumeClaimTemplates`, ephemeral volumes) are not among its claims.
    """
    problem: str = ""
    """Why there is no template; empty if there is one."""
    images: tuple[str, ...] = ()
    """The images of the containers of a Deployment or StatefulSet."""


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """A PodDisruptionBudget."""

    namespace: str
    name: str
    selector: Selector | None
    """The selector; None selects no pod, and an empty one all pods of the namespace."""
    disruptions_allowed: int
    """`status.disruptionsAllowed`; 0 if it is not stated."""
    problem: str = ""
    """Why it cannot be read; empty if nothing is wrong. A budget that cannot be read forbids every disruption in its
    namespace.
    """
