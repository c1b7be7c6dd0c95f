"""What is known of a cluster at one moment, as immutable values.

A fact that cannot be stated is `Unknown`, with the reason; it is never 0 or empty. Every known fact carries the time at
which its source last confirmed it, so that a decision can refuse to act on an old one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.cluster.scheduling.constraints import PodScheduling
    from adapter.cluster.scheduling.storage import Storage
    from adapter.cluster.scheduling.workloads import DisruptionBudget, Workload
    from adapter.objects.pod_requests import PodResources
    from adapter.objects.quantities import Quantity

T = TypeVar("T")

ENDED_PHASES = frozenset({"Succeeded", "Failed"})
"""Phases of pods whose containers have ended and will not start again."""

CountedKind: TypeAlias = Literal["pods", "services", "namespaces", "endpoints"]


@dataclass(frozen=True, slots=True)
class Observed(Generic[T]):
    """A fact, and when its source last confirmed it."""

    value: T
    time: float
    """Seconds since the Unix epoch."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that cannot be stated now."""

    reason: str
    """What is missing, and how to supply it."""
    is_refused: bool = False
    """Whether the API server refuses to state it, so that waiting does not help: rights or the kind are missing."""


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """An address of a node."""

    type: str
    """`InternalIP`, `ExternalIP`, `Hostname`, `InternalDNS` or `ExternalDNS`."""
    address: str


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """The part of a Node on which decisions depend. Two values are equal if only heartbeats differ."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    conditions: Mapping[str, str]
    """Type to status, such as `Ready` to `True`."""
    created: float | None
    """Seconds since the Unix epoch; None if the object does not state it."""
    capacity: Mapping[str, Quantity]
    allocatable: Mapping[str, Quantity]
    addresses: tuple[NodeAddress, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Those that decide whether a node may be removed, where scheduling is needed; no others are kept."""
    provider_id: str = ""
    is_terminating: bool = False
    """Whether it has a deletionTimestamp."""

    @property
    def ready(self) -> bool:
        """Whether the condition `Ready` is `True`."""
        return self.conditions.get("Ready") == "True"


@dataclass(frozen=True, slots=True)
class ControllerReference:
    """The owner of an object that has `controller: true`."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class SchedulingFacts:
    """What is known of a pod beside its resources where nodes are sized. Pods of one controller share most of it."""

    scheduling: PodScheduling
    annotations: Mapping[str, str]
    """Those of Cluster Autoscaler and the annotation of mirror pods; no others are kept."""
    created: float | None
    """Seconds since the Unix epoch."""
    deleted: float | None
    """Of the deletionTimestamp, which is the time at which the grace period ends."""
    grace_seconds: float
    """`deletionGracePeriodSeconds` where it is being deleted, else `spec.terminationGracePeriodSeconds` (30)."""
    is_unschedulable: bool
    """Whether the condition PodScheduled is False with the reason Unschedulable."""
    restart_policy: str
    owner_problem: str = ""
    """Why its owner cannot be used, such as two controllers or a cycle of owners; empty if nothing is wrong."""
    problem: str = ""
    """Why a bound pod cannot be read; empty if nothing is wrong. Such a pod takes its place, but nothing else is known
    of it: it must not be moved, so its node must be kept. It is named in `ClusterState.left_out`, too."""
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
    """Empty while the pod is not bound."""
    labels: Mapping[str, str]
    controller: ControllerReference | None
    phase: str
    is_terminating: bool
    """Whether it has a deletionTimestamp."""
    bound_at: float | None
    """Unix seconds at which the condition PodScheduled became True, else of the creation; None if it is not bound."""
    ended_at: float | None
    """Unix seconds at which the last container ended, for a pod that has ended (phase Succeeded or Failed)."""
    priority: int
    resources: PodResources
    gpu_allocation: str = ""
    """Text of the annotation that names the pod's GPUs, where one is configured."""
    facts: SchedulingFacts | None = None
    """None unless `ClusterNeeds.scheduling`."""

    @property
    def has_ended(self) -> bool:
        """Whether its containers have ended and will not start again, so that it uses nothing."""
        return self.phase in ENDED_PHASES


@dataclass(frozen=True, slots=True)
class PodSelector:
    """An object that selects pods: a Service, ReplicationController, ReplicaSet or StatefulSet."""

    kind: str
    namespace: str
    name: str
    uid: str
    selector: str
    """In kubectl's syntax; empty if it selects nothing."""


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """The part of a HorizontalPodAutoscaler that shows what it owns and which changes it ignores."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    target_api_version: str
    target_kind: str
    target_name: str
    min_replicas: int
    max_replicas: int
    scale_up_tolerance_ratio: float | None
    """`behavior.scaleUp.tolerance`; None where the HPA does not state it."""
    scale_down_tolerance_ratio: float | None
    metric_names: tuple[str, ...]
    """Names of its Pods, Object and External metrics."""


@dataclass(frozen=True, slots=True, order=True)
class CountQuery:
    """Which objects to count."""

    kind: CountedKind
    """`endpoints` counts ready addresses of EndpointSlices, each address of a Service once."""
    namespace: str = ""
    """Empty for all namespaces."""
    selector: str = ""
    """A label selector in kubectl's syntax; empty for all objects."""


JsonObject: TypeAlias = "Mapping[str, object]"


@dataclass(frozen=True, slots=True, order=True)
class ObjectKind:
    """A kind of which whole objects are read, in whichever version the cluster serves."""

    group: str
    """API group, such as `cluster.x-k8s.io`."""
    resource: str
    """Plural name, such as `machinedeployments`."""
    kind: str
    namespace: str = ""
    """Empty for all namespaces, and for kinds without namespaces."""
    name: str = ""
    """Empty for all objects; otherwise the only one that is needed, so that a role need not grant the others."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An object that cannot be used."""

    kind: str
    namespace: str
    name: str
    reason: str
    """What is wrong with it and what to do, in one sentence that names the object."""


@dataclass(frozen=True, slots=True)
class ClusterNeeds:
    """Which facts are needed. Nothing else is watched or read."""

    nodes: bool = False
    autoscaler_namespaces: frozenset[str] = frozenset()
    """The empty text stands for all namespaces."""
    counts: frozenset[CountQuery] = frozenset()
    pods: bool = False
    pod_selectors: bool = False
    gpu_annotation: str = ""
    """Annotation of pods that names their GPUs; empty for none."""
    scheduling: bool = False
    """Constraints of pods, workloads, budgets, labels of namespaces and storage. Needs nodes and pods, too."""
    objects: frozenset[ObjectKind] = frozenset()
    """Kinds of which whole objects are needed, such as those of Cluster API."""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The facts that were needed, at one moment."""

    nodes: Observed[tuple[ClusterNode, ...]] | Unknown = Unknown("nodes are not watched")
    autoscalers: Mapping[str, Observed[tuple[Autoscaler, ...]] | Unknown] = field(default_factory=dict)
    """By namespace."""
    counts: Mapping[CountQuery, Observed[int] | Unknown] = field(default_factory=dict)
    pods: Observed[tuple[ClusterPod, ...]] | Unknown = Unknown("pods are not watched")
    pod_selectors: Observed[tuple[PodSelector, ...]] | Unknown = Unknown("selectors of pods are not watched")
    workloads: Observed[tuple[Workload, ...]] | Unknown = Unknown("workloads are not watched")
    disruption_budgets: Observed[tuple[DisruptionBudget, ...]] | Unknown = Unknown("budgets are not watched")
    namespace_labels: Observed[Mapping[str, Mapping[str, str]]] | Unknown = Unknown("namespaces are not watched")
    """By namespace."""
    storage: Storage | None = None
    """None unless `ClusterNeeds.scheduling`."""
    objects: Mapping[ObjectKind, Observed[tuple[JsonObject, ...]] | Unknown] = field(default_factory=dict)
    """Whole objects as the API gives them. Values are shared: they must not be changed."""
    left_out: tuple[LeftOut, ...] = ()
    """Each object that cannot be used, so that an answer can name and count it."""
    problems: tuple[str, ...] = ()
    """Which objects are left out of the facts above and why, one sentence each. A decision repeats them in its message,
    since what it sees of the cluster may be too small."""
