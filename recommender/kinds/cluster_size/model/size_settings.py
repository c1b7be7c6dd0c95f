"""The configuration of a cluster size recommendation. Names and defaults are those of Cluster Autoscaler's flags."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from recommender.kinds.cluster_size.model.taints import PassingTaints

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from adapter.foundation.objects.selectors import Selector
    from recommender.kinds.cluster_size.model.groups import GroupOptions, NodeGroup
    from recommender.kinds.kind import Recommendation

CORES = "cpu"
MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class StaticGroup:
    """A group as the configuration lists it."""

    name: str
    min_size: int
    max_size: int
    selector: Selector
    """Selects the nodes that belong to the group."""
    price: float | None = None
    capacity: Mapping[str, int] | None = None
    """The capacity of the template, CPU in millicores; None if the template is taken from a node."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of the template, completed from the selector."""
    taints: tuple[tuple[str, str, str], ...] = ()
    """The key, value and effect of each taint of the template."""
    options: GroupOptions | None = None


@dataclass(frozen=True, slots=True)
class ClusterApiGroups:
    """Groups from the annotated objects of Cluster API."""

    namespaces: tuple[str, ...] = ()
    """The trusted namespaces. Anyone who can create objects of Cluster API in one of them controls sizes."""
    cluster_name: str = ""
    """The only cluster whose groups count; empty for all clusters."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """The prices, by the name of the group."""
    mark_machines: bool | None = None
    """Whether nodes are removed by marking their Machines and lowering the size; None if the file does not say."""

    @property
    def marks_machines(self) -> bool:
        """Whether nodes are removed by marking their Machines; the default is that they are not."""
        return self.mark_machines is True

    @property
    def may_have_marks(self) -> bool:
        """Whether the file says that Machines are, or are no longer, marked: the right to change them is kept."""
        return self.mark_machines is not None


@dataclass(frozen=True, slots=True)
class LabelGroups:
    """A group for each value of a label; another autoscaler stays in charge of their sizes."""

    key: str
    min_size: int = 0
    max_size: int = 1000
    prices: Mapping[str, float] = field(default_factory=dict)
    """The prices, by the value of the label."""


@dataclass(frozen=True, slots=True)
class PluginGroups:
    """Groups from an entry point of the group `tidewatch.node_groups`."""

    name: str
    options: Mapping[str, object] = field(default_factory=dict)
    writes: bool = False
    """Whether sizes are written through the plugin with the output `scale`."""
    delete_nodes: bool = False
    """Whether removable nodes are drained and deleted through the plugin."""


@dataclass(frozen=True, slots=True)
class ExternalGrpcGroups:
    """Groups of a provider that speaks Cluster Autoscaler's gRPC protocol."""

    address: str
    """The host and port of the provider."""
    ca_file: Path | None = None
    """The CA certificates by which the provider's certificate is verified; None for no TLS."""
    cert_file: Path | None = None
    key_file: Path | None = None
    """The key of the client certificate `cert_file`, by which the provider authenticates this program."""
    timeout_seconds: float = 5.0
    """The timeout of each call, like Cluster Autoscaler's `grpc_timeout`."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """The prices by the id of the group; for other groups, the provider's prices are used."""
    delete_nodes: bool = False
    """Whether nodes that can be removed are drained and deleted through the provider."""
    defaults: GroupOptions | None = None
    """The options of all groups, which are sent to the provider; None for Cluster Autoscaler's defaults."""


ProviderSettings: TypeAlias = PluginGroups | ExternalGrpcGroups
EXTERNAL_GRPC: Final = "externalGRPC"


def provider_name(settings: ProviderSettings) -> str:
    """Return the name of a provider of node groups: `externalGRPC`, or `plugin/NAME`."""
    return EXTERNAL_GRPC if isinstance(settings, ExternalGrpcGroups) else f"plugin/{settings.name}"


SYSTEM_NAMESPACE = "kube-system"


@dataclass(frozen=True, slots=True)
class TrustedDaemonSets:
    """The namespaces whose DaemonSets count on new nodes without a limit, and the limit for all others."""

    namespaces: frozenset[str] = frozenset({SYSTEM_NAMESPACE})
    share_ratio: float = 0.25
    """The share of each resource of a new node for all DaemonSets of a namespace together."""


@dataclass(frozen=True, slots=True)
class NodeGroupSources:
    """The sources of node groups, in any mix, and the namespaces whose objects are trusted for them."""

    static: tuple[StaticGroup, ...] = ()
    cluster_api: ClusterApiGroups | None = None
    by_label: LabelGroups | None = None
    external_grpc: ExternalGrpcGroups | None = None
    plugin: PluginGroups | None = None
    daemon_sets: TrustedDaemonSets = field(default_factory=TrustedDaemonSets)
    autoscaler_namespaces: tuple[str, ...] = (SYSTEM_NAMESPACE,)
    """The namespaces in which a Cluster Autoscaler is looked for. In others, anyone who can create a Deployment could
    stop writes."""

    @property
    def providers(self) -> tuple[ProviderSettings, ...]:
        """Return the providers whose groups are read."""
        return tuple(each for each in (self.external_grpc, self.plugin) if each is not None)

    @property
    def delete_nodes(self) -> bool:
        """Whether nodes are drained and deleted through a provider."""
        return any(each.delete_nodes for each in self.providers)

    @property
    def are_written(self) -> bool:
        """Whether the sizes of some groups can be written."""
        is_plugin_written = self.plugin is not None and self.plugin.writes
        return self.cluster_api is not None or self.external_grpc is not None or is_plugin_written


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Limits over all nodes, including those outside groups. None means no limit."""

    max_nodes: int | None = None
    min_cores: int = 0
    max_cores: int | None = None
    min_memory_bytes: int = 0
    max_memory_bytes: int | None = None
    gpus: Mapping[str, int] = field(default_factory=dict)
    """The largest total of an extended resource, by its name."""


@dataclass(frozen=True, slots=True)
class Unready:
    """The cluster counts as unhealthy when the unready nodes exceed both limits."""

    ratio: float = 0.45
    count: int = 3


@dataclass(frozen=True, slots=True)
class ScaleDownSettings:
    """Settings that decide which nodes are removed, and when."""

    enabled: bool = True
    utilization_threshold_ratio: float = 0.5
    gpu_utilization_threshold_ratio: float = 0.5
    unneeded_seconds: float = 600.0
    unready_seconds: float = 1200.0
    unready_enabled: bool = True
    delay_after_add_seconds: float = 600.0
    delay_after_delete_seconds: float = 0.0
    delay_after_failure_seconds: float = 180.0
    max_parallelism: int = 10
    max_drain_parallelism: int = 1
    skip_nodes_with_system_pods: bool = True
    skip_nodes_with_local_storage: bool = True
    skip_nodes_with_custom_controller_pods: bool = True
    min_replica_count: int = 0
    ignore_daemon_sets_utilization: bool = False
    ignore_mirror_pods_utilization: bool = False
    system_pod_seconds: float = 3600.0
    """From this age on, a pod of kube-system without a budget does not block a removal
    (`blocking-system-pod-distruption-timeout`).
    """


@dataclass(frozen=True, slots=True)
class HeadroomSchedule:
    """A larger reserve at certain times."""

    cron: str
    timezone: str
    duration_seconds: float
    headroom_ratio: float


@dataclass(frozen=True, slots=True)
class WorkloadForecast:
    """A predictive recommendation of the same file, whose predicted replicas count as future pods."""

    recommendation: str


@dataclass(frozen=True, slots=True)
class BufferSettings:
    """The CapacityBuffer whose replicas are written (output `capacityBuffer`)."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class ClusterSizeSettings:
    """The settings in `clusterSize` of a recommendation."""

    node_groups: NodeGroupSources
    expanders: tuple[str, ...] = ("least-waste",)
    priorities: Mapping[int, tuple[str, ...]] | None = None
    """Regular expressions by priority; None for those of Cluster Autoscaler's ConfigMap, or for no priorities."""
    priorities_config_map: tuple[str, str] | None = None
    """The namespace and name of the ConfigMap with the priorities, such as
    `kube-system/cluster-autoscaler-priority-expander`."""
    random_seed: int = 0
    balance_similar_node_groups: bool = False
    balancing_ignore_labels: tuple[str, ...] = ()
    balancing_labels: tuple[str, ...] = ()
    """If given, only these labels are compared to find similar groups."""
    limits: SizeLimits = field(default_factory=SizeLimits)
    rounds: int | None = None
    """How often Cluster Autoscaler's decision is repeated; None means until no group can hold another pod."""
    max_nodes_per_scale_up: int = 1000
    new_pod_scale_up_delay_seconds: float = 0.0
    expendable_pods_priority_cutoff: int = -10
    max_node_provision_seconds: float = 900.0
    passing_taints: PassingTaints = field(default_factory=PassingTaints)
    scheduler_names: frozenset[str] = frozenset()
    """Only pods of these schedulers count; empty for all."""
    unready: Unready = field(default_factory=Unready)
    enforce_min_size: bool = True
    scale_down: ScaleDownSettings = field(default_factory=ScaleDownSettings)
    headroom_ratio: float = 0.0
    """The share of all requested CPU and memory that is kept free in addition."""
    schedules: tuple[HeadroomSchedule, ...] = ()
    forecasts: tuple[WorkloadForecast, ...] = ()
    buffer: BufferSettings | None = None

    def provision_seconds_of(self, group: NodeGroup) -> float:
        """Return how long nodes of the group may take from the request until they can hold pods."""
        own = group.options.max_node_provision_seconds
        return self.max_node_provision_seconds if own is None else own


def cluster_size_settings(recommendations: Iterable[Recommendation]) -> dict[str, ClusterSizeSettings]:
    """Return the settings of cluster size recommendations by name."""
    return {each.policy.name: each.subject for each in recommendations if isinstance(each.subject, ClusterSizeSettings)}
