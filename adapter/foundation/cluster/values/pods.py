"""The value of a pod."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.constraints import PodScheduling
    from adapter.foundation.objects.pod_requests import PodResources

WORKLOAD_GROUPS = frozenset({"apps", "extensions"})
"""API groups of Deployments, ReplicaSets, StatefulSets and DaemonSets; `extensions` was used until Kubernetes 1.15."""
ENDED_PHASES = frozenset({"Succeeded", "Failed"})
"""Phases of pods whose containers have ended and will not start again."""


@dataclass(frozen=True, slots=True)
class ControllerReference:
    """The owner of an object that has `controller: true`."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def is_daemon_set(self) -> bool:
        """Whether it is a DaemonSet of Kubernetes, not an object of the same kind in another API group."""
        return self.kind == "DaemonSet" and self.group in WORKLOAD_GROUPS


@dataclass(frozen=True, slots=True)
class SchedulingFacts:
    """Facts of a pod in addition to its resources, for sizing nodes. Pods of one controller share most of them."""

    scheduling: PodScheduling
    annotations: Mapping[str, str]
    """The annotations of Cluster Autoscaler and that of mirror pods; no others are kept."""
    created: float | None
    """The time of creation in Unix seconds."""
    deleted: float | None
    """The deletionTimestamp in Unix seconds, which is the time at which the grace period ends; None if there is
    none."""
    grace_seconds: float
    """`deletionGracePeriodSeconds` if it is being deleted, else `spec.terminationGracePeriodSeconds` (default 30)."""
    restart_policy: str
    nominated_node: str = ""
    """`status.nominatedNodeName` of a pod that is not bound: the node from which the scheduler evicts others for it."""
    owner_problem: str = ""
    """Why its owner cannot be used, such as two controllers or a cycle of owners; empty if nothing is wrong."""
    problem: str = ""
    """Why a bound pod cannot be read; empty if nothing is wrong. Such a pod occupies its node, but nothing else is
    known about it: it must not be moved, so its node must be kept. `ClusterState.left_out` names it, too.
    """
    are_requests_known: bool = True
    """False for a bound pod whose requests cannot be read: then `resources` are all that its node offers, so that
    nothing is placed beside it."""


@dataclass(frozen=True, slots=True)
class ClusterPod:
    """The part of a Pod on which placement depends. Pods of one controller share their labels and resources."""

    namespace: str
    name: str
    uid: str
    node: str
    """The name of the pod's node; empty while the pod is not bound."""
    labels: Mapping[str, str]
    controller: ControllerReference | None
    phase: str
    is_terminating: bool
    """Whether it has a deletionTimestamp."""
    bound_at: float | None
    """Unix seconds at which PodScheduled became True, or at which the pod was created if unknown; None if not bound."""
    ended_at: float | None
    """Unix seconds at which the last container ended, for a pod that has ended (phase Succeeded or Failed)."""
    priority: int
    resources: PodResources
    gpu_allocation: str = ""
    """Value of the annotation that names the pod's GPUs, if such an annotation is configured."""
    facts: SchedulingFacts | None = None
    """Facts for scheduling; None unless `ClusterNeeds.scheduling`."""

    @property
    def has_ended(self) -> bool:
        """Whether its containers have ended and will not start again, so that it uses nothing."""
        return self.phase in ENDED_PHASES
