"""The known facts of a cluster at one moment, as immutable values.

A fact that cannot be read is `Unknown`, with the reason; it is never 0 or empty. Every known fact carries the time at
which its source last confirmed it, so that a decision can refuse to act on an old one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from adapter.foundation.cluster.values.observed import Observed, Unknown
from adapter.foundation.cluster.values.pods import ENDED_PHASES, ClusterPod, ControllerReference, SchedulingFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.storage import Storage
    from adapter.foundation.cluster.values.workloads import DisruptionBudget, WorkloadFacts
    from adapter.foundation.objects.quantities import Quantity
    from adapter.foundation.objects.selectors import Selector

__all__ = [
    "ENDED_PHASES",
    "Autoscaler",
    "AutoscalerMetric",
    "ClusterNeeds",
    "ClusterNode",
    "ClusterPod",
    "ClusterState",
    "ControllerReference",
    "CountQuery",
    "CountedKind",
    "JsonObject",
    "LeftOut",
    "NodeAddress",
    "ObjectKind",
    "Observed",
    "PodSelector",
    "SchedulingFacts",
    "Taint",
    "Unknown",
]

CountedKind: TypeAlias = Literal["pods", "services", "namespaces", "endpoints"]


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
    """Maps each condition's type to its status, such as `Ready` to `True`."""
    created: float | None
    """The time of creation in Unix seconds; None if the object does not state it."""
    capacity: Mapping[str, Quantity]
    allocatable: Mapping[str, Quantity]
    addresses: tuple[NodeAddress, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    """If scheduling is needed, the annotations that decide whether the node may be removed; no others are kept."""
    provider_id: str = ""
    system_uuid: str = ""
    """The UUID of the machine, from its firmware or hypervisor; empty if the kubelet does not state it."""
    is_terminating: bool = False
    """Whether it has a deletionTimestamp."""
    uid: str = field(default="", compare=False)
    """The UID, for checks of owner references. It is not compared: a node that is created again has another creation
    time anyway."""

    @property
    def ready(self) -> bool:
        """Whether the condition `Ready` is `True`."""
        return self.conditions.get("Ready") == "True"


@dataclass(frozen=True, slots=True)
class PodSelector:
    """An object that selects pods: a Service, ReplicationController, ReplicaSet, StatefulSet or DaemonSet."""

    kind: str
    namespace: str
    name: str
    uid: str
    selector: str
    """The selector in kubectl's syntax; empty if it selects nothing."""


@dataclass(frozen=True, slots=True)
class AutoscalerMetric:
    """A Pods, Object or External metric of a HorizontalPodAutoscaler."""

    name: str
    average_milli: int | None = None
    """`averageValue` of an Object or External metric in thousandths: the HPA wants the metric divided by it. None for
    any other target, and for a Pods metric, which has one value for each pod."""
    selector: Selector | None = None
    """Which series count; None for all, and for a selector that cannot be read."""
    described: tuple[str, str, str] | None = None
    """API version, kind and name of the object that an Object metric is about."""


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
    """`behavior.scaleUp.tolerance`; None if the HPA does not state it."""
    scale_down_tolerance_ratio: float | None
    metrics: tuple[AutoscalerMetric, ...]
    """Its Pods, Object and External metrics."""
    resource_names: tuple[str, ...] = ()
    """The resources of its Resource and ContainerResource metrics, such as `cpu`, sorted."""


@dataclass(frozen=True, slots=True, order=True)
class CountQuery:
    """Which objects to count."""

    kind: CountedKind
    """`endpoints` counts ready addresses of EndpointSlices, each address of a Service once."""
    namespace: str = ""
    """The namespace; empty for all namespaces."""
    selector: str = ""
    """A label selector in kubectl's syntax; empty for all objects."""


JsonObject: TypeAlias = "Mapping[str, object]"


@dataclass(frozen=True, slots=True, order=True)
class ObjectKind:
    """A kind whose objects are read whole, in whichever version the cluster serves."""

    group: str
    """API group, such as `cluster.x-k8s.io`."""
    resource: str
    """Plural name, such as `machinedeployments`."""
    kind: str
    namespace: str = ""
    """The namespace; empty for all namespaces, and for kinds without namespaces."""
    name: str = ""
    """Name of the only object that is needed, so that a role need not grant access to others; empty for all objects."""
    is_optional: bool = False
    """Whether many clusters lack the kind, so that its absence is not reported and is rechecked less often."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An object that cannot be used."""

    kind: str
    namespace: str
    name: str
    reason: str
    """One sentence that names the object, the problem, and how to fix it."""


@dataclass(frozen=True, slots=True)
class ClusterNeeds:
    """Which facts are needed. Nothing else is watched or read."""

    nodes: bool = False
    autoscaler_namespaces: frozenset[str] = frozenset()
    """The namespaces whose HPAs are needed; the empty text stands for all namespaces."""
    counts: frozenset[CountQuery] = frozenset()
    pods: bool = False
    pod_selectors: bool = False
    gpu_annotation: str = ""
    """Annotation of pods that names their GPUs; empty for none."""
    scheduling: bool = False
    """Whether pod constraints, workloads, disruption budgets, namespace labels and storage are needed, which also
    requires nodes and pods."""
    objects: frozenset[ObjectKind] = frozenset()
    """Kinds whose objects are needed whole, such as those of Cluster API."""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The facts that were needed, at one moment."""

    nodes: Observed[tuple[ClusterNode, ...]] | Unknown = Unknown("nodes are not watched")
    autoscalers: Mapping[str, Observed[tuple[Autoscaler, ...]] | Unknown] = field(default_factory=dict)
    """The HPAs, by namespace."""
    counts: Mapping[CountQuery, Observed[int] | Unknown] = field(default_factory=dict)
    pods: Observed[tuple[ClusterPod, ...]] | Unknown = Unknown("pods are not watched")
    pod_selectors: Observed[tuple[PodSelector, ...]] | Unknown = Unknown("selectors of pods are not watched")
    workloads: Observed[tuple[WorkloadFacts, ...]] | Unknown = Unknown("workloads are not watched")
    disruption_budgets: Observed[tuple[DisruptionBudget, ...]] | Unknown = Unknown("budgets are not watched")
    namespace_labels: Observed[Mapping[str, Mapping[str, str]]] | Unknown = Unknown("namespaces are not watched")
    """The labels of the namespaces, by namespace."""
    storage: Storage | None = None
    """The facts of storage; None unless `ClusterNeeds.scheduling`."""
    objects: Mapping[ObjectKind, Observed[tuple[JsonObject, ...]] | Unknown] = field(default_factory=dict)
    """Whole objects as the API gives them. Values are shared: they must not be changed."""
    left_out: tuple[LeftOut, ...] = ()
    """Each object that cannot be used, so that an answer can name and count it."""
    problems: tuple[str, ...] = ()
    """Which nodes, HPAs and counted objects are left out of the facts above and why, one sentence each. A decision
    repeats them in its message, since it may see too small a cluster.
    """
    placement_problems: tuple[str, ...] = ()
    """Problems like these with pods, whole objects and scheduling; only decisions about pod placement need them."""
