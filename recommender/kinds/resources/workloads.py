"""The workload of each pod and the facts of its containers, from kube-state-metrics (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

NO_OWNER: Final = "<none>"
"""The owner that kube-state-metrics reports for a pod, a ReplicaSet or a Job without an owner."""
_REPLICA_SET: Final = "ReplicaSet"
_JOB: Final = "Job"
_POD: Final = "Pod"
_OWNED_BY_NODE: Final = "Node"
CPU: Final = "cpu"
MEMORY: Final = "memory"
RESOURCES: Final = (CPU, MEMORY)


class NamespacedPod(NamedTuple):
    """Namespace and name of a pod."""

    namespace: str
    pod: str


class PodContainer(NamedTuple):
    """A container of a pod."""

    namespace: str
    pod: str
    container: str

    @property
    def of_pod(self) -> NamespacedPod:
        """The pod of the container."""
        return NamespacedPod(self.namespace, self.pod)


class SizedWorkload(NamedTuple):
    """A workload that creates pods, such as a Deployment, a StatefulSet or a CronJob; or a pod without an owner."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        """Return the name as people write it."""
        return f"{self.namespace}/{self.kind.lower()}/{self.name}"


class WorkloadContainer(NamedTuple):
    """A container of a workload's pods: a row of recommendations."""

    workload: SizedWorkload
    container: str


class ObjectOwner(NamedTuple):
    """The owner of an object in the same namespace; both fields are `NO_OWNER` if it has none."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class ObjectOwners:
    """Owners by namespace and name. An object with several owners here cannot come from a single cluster."""

    pods: Mapping[tuple[str, str], frozenset[ObjectOwner]] = field(default_factory=dict)
    replica_sets: Mapping[tuple[str, str], frozenset[ObjectOwner]] = field(default_factory=dict)
    jobs: Mapping[tuple[str, str], frozenset[ObjectOwner]] = field(default_factory=dict)

    def workload_of(self, pod: NamespacedPod) -> SizedWorkload | None:
        """Return the workload of a pod: the pod itself if no owner is known, and None if there are several owners."""
        direct = self.pods.get(pod, frozenset())
        if len(direct) > 1:
            return None
        owner = next(iter(direct), ObjectOwner(NO_OWNER, NO_OWNER))
        if owner.kind in {NO_OWNER, "", _OWNED_BY_NODE}:
            return SizedWorkload(pod.namespace, _POD, pod.pod)
        above = {_REPLICA_SET: self.replica_sets, _JOB: self.jobs}.get(owner.kind, {})
        highest = above.get((pod.namespace, owner.name), frozenset())
        if len(highest) > 1:
            return None
        found = next(iter(highest), owner)
        return SizedWorkload(pod.namespace, *(owner if found.kind in {NO_OWNER, ""} else found))


@dataclass(frozen=True, slots=True)
class WorkloadAutoscaler:
    """A HorizontalPodAutoscaler that follows CPU or memory."""

    name: str
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The requests and limits that kube-state-metrics reports at the end of the history, in cores and bytes."""

    owners: ObjectOwners = field(default_factory=ObjectOwners)
    requests: Mapping[str, Mapping[PodContainer, float]] = field(default_factory=dict)
    """Requests by resource. A container that states none is absent, and so is a resource about which nothing is
    known."""
    limits: Mapping[str, Mapping[PodContainer, float]] = field(default_factory=dict)
    init_containers: frozenset[PodContainer] = frozenset()
    autoscalers: Mapping[SizedWorkload, WorkloadAutoscaler] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    """Metrics that have no series, with the facts that are unknown without them."""
