"""The parameters of a proportional recommendation, as immutable values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from recommender.kinds.resizing.resize_settings import ResizeSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.state import CountQuery


class Mode:
    """The parameters of a mode; `modes/registry.py` lists the modes."""

    __slots__ = ()

    include_unschedulable_nodes: bool
    """Whether nodes and cores include nodes that are cordoned or not ready."""


@dataclass(frozen=True, slots=True)
class Linear(Mode):
    """The parameters of the mode `linear`."""

    cores_per_replica: float = 0.0
    """Cores for each replica; 0 if cores do not count."""
    nodes_per_replica: float = 0.0
    """Nodes for each replica; 0 if nodes do not count."""
    min: int = 1
    max: int = 0
    """The most replicas; 0 means no limit."""
    prevent_single_point_failure: bool = False
    include_unschedulable_nodes: bool = False


Rungs: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of threshold and replicas, in ascending order of thresholds."""


@dataclass(frozen=True, slots=True)
class Ladder(Mode):
    """The parameters of the mode `ladder`."""

    cores_to_replicas: Rungs = ()
    nodes_to_replicas: Rungs = ()
    include_unschedulable_nodes: bool = False


@dataclass(frozen=True, slots=True)
class Interpolated(Mode):
    """The parameters of the mode `interpolated`: straight lines between the rungs of a ladder."""

    cores_to_replicas: Rungs = ()
    nodes_to_replicas: Rungs = ()
    min: int = 1
    max: int = 0
    """The most replicas; 0 means no limit."""
    include_unschedulable_nodes: bool = False


@dataclass(frozen=True, slots=True)
class DriverQuery:
    """A Prometheus query with one value, as a driver."""

    expr: str


@dataclass(frozen=True, slots=True)
class Driver:
    """A count other than nodes and cores, with its own ratio or ladder."""

    name: str
    """`services`, `pods`, `namespaces`, `endpoints` or `query`."""
    source: CountQuery | DriverQuery
    per_replica: float | None = None
    ladder: Rungs = ()


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """Which nodes count."""

    selector: str = ""
    """A label selector in kubectl's syntax."""
    ignore_taints: frozenset[str] = frozenset()
    """Nodes with a taint of one of these keys do not count."""
    ignore_virtual_nodes: bool = False
    """If true, nodes of virtual-kubelet and of EKS Fargate do not count."""
    min_node_age_seconds: float = 0.0
    """Nodes younger than this do not count. A node of unknown age counts."""


@dataclass(frozen=True, slots=True)
class ParametersConfigMap:
    """Parameters in a ConfigMap of cluster-proportional-autoscaler."""

    namespace: str
    name: str
    default_params: Mapping[str, str] | None = None
    """The data of the ConfigMap, from mode to parameters as JSON. It is used only to create a missing ConfigMap."""


@dataclass(frozen=True, slots=True)
class ResourceStep:
    """The size of one resource of one container, as cluster-proportional-vertical-autoscaler computes it.

    That program has no key for `pods_and_services_per_step`.
    """

    base: str
    max: str | None = None
    step: str | None = None
    cores_per_step: float = 0.0
    nodes_per_step: float = 0.0
    pods_and_services_per_step: float = 0.0


@dataclass(frozen=True, slots=True)
class ProportionalSettings:
    """The settings in `proportional:` of a recommendation: a mode, a ConfigMap, or only drivers and resources."""

    mode: Mode | None = None
    config_map: ParametersConfigMap | None = None
    drivers: tuple[Driver, ...] = ()
    node_filter: NodeFilter = field(default_factory=NodeFilter)
    hysteresis_ratio: float = 0.0
    """The share of a rung by which a count must fall below the rung before the size follows it downwards."""
    quiet_period_seconds: float = 0.0
    """How long the size stays unchanged after a change."""
    resources: Mapping[str, Mapping[str, Mapping[str, ResourceStep]]] = field(default_factory=dict)
    """How sizes grow, by container, by `requests` or `limits`, and by resource. All nodes that pass the filter
    count."""
    resize: ResizeSettings = field(default_factory=ResizeSettings)
    also_with_hpa: bool = False
    """Whether sizes are also written if an HPA follows their resource."""

    @property
    def sizes_by_objects(self) -> bool:
        """Whether any size grows with the pods and Services of the cluster."""
        return any(
            step.pods_and_services_per_step > 0
            for sections in self.resources.values()
            for steps in sections.values()
            for step in steps.values()
        )
