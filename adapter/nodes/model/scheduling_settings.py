"""The values of the scheduling configuration (`--scheduling-config`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.usage import UsageName


class PolicyName(StrEnum):
    """The policies, as paths and configuration name them."""

    TARGET_LOAD_PACKING = "target-load-packing"
    LOAD_VARIATION_RISK_BALANCING = "load-variation-risk-balancing"
    LOW_RISK_OVERCOMMITMENT = "low-risk-overcommitment"
    PEAKS = "peaks"
    DAILY_PEAKS = "daily-peaks"
    PREDICTED_LOAD_PACKING = "predicted-load-packing"
    SELECTOR_SPREAD = "selector-spread"
    MOST_ALLOCATED = "most-allocated"
    REQUESTED_TO_CAPACITY_RATIO = "requested-to-capacity-ratio"
    GPU_PACKING = "gpu-packing"
    GPU_FRAGMENTATION = "gpu-fragmentation"


NodeMatch: TypeAlias = Literal["auto", "instance", "ip", "nodename"]


@dataclass(frozen=True, slots=True)
class TargetLoadPackingArgs:
    """`TargetLoadPackingArgs` of scheduler-plugins; `predicted-load-packing` has the same arguments."""

    target_utilization_percent: float = 40.0
    default_requests_cpu_milli: int = 1000
    default_requests_multiplier: float = 1.5


@dataclass(frozen=True, slots=True)
class LoadVariationRiskBalancingArgs:
    """`LoadVariationRiskBalancingArgs` of scheduler-plugins, over any listed resource."""

    safe_variance_margin: float = 1.0
    safe_variance_sensitivity: float = 1.0
    resources: tuple[LoadResource, ...] = (LoadResource.CPU, LoadResource.MEMORY)


@dataclass(frozen=True, slots=True)
class LowRiskOverCommitmentArgs:
    """`LowRiskOverCommitmentArgs` of scheduler-plugins."""

    smoothing_window_size: int = 5
    risk_limit_weights: Mapping[str, float] = field(default_factory=lambda: {"cpu": 0.5, "memory": 0.5})
    """The weights of the limits, always for both CPU and memory: reading a configuration adds those it leaves out."""


@dataclass(frozen=True, slots=True)
class PowerModel:
    """Power of a node in watts at x percent of its CPU: `k0 + k1 * exp(k2 * x)`."""

    k0: float
    k1: float
    k2: float


@dataclass(frozen=True, slots=True)
class PeaksArgs:
    """`PeaksArgs` of scheduler-plugins."""

    node_power_model: Mapping[str, PowerModel] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DailyPeaksArgs:
    """`priority` and `predicate` of crane's DynamicSchedulerPolicy, with crane's defaults for `priority`."""

    weights: Mapping[UsageName, float] = field(default_factory=lambda: dict(_CRANE_WEIGHTS))
    limits: Mapping[UsageName, float] = field(default_factory=dict)
    """Ratios above which a node is filtered out; none by default."""


_CRANE_WEIGHTS: Mapping[UsageName, float] = {
    UsageName.CPU_5M: 0.2,
    UsageName.CPU_1H: 0.3,
    UsageName.CPU_1D: 0.5,
    UsageName.MEMORY_5M: 0.2,
    UsageName.MEMORY_1H: 0.3,
    UsageName.MEMORY_1D: 0.5,
}


@dataclass(frozen=True, slots=True)
class SelectorSpreadArgs:
    """SelectorSpread has no arguments."""


@dataclass(frozen=True, slots=True)
class ResourceWeight:
    """How much a resource counts in a mean of several."""

    name: str
    weight: int = 1


DEFAULT_WEIGHTS = (ResourceWeight("cpu"), ResourceWeight("memory"))


@dataclass(frozen=True, slots=True)
class MostAllocatedArgs:
    """The scoring strategy `MostAllocated` of `NodeResourcesFitArgs`."""

    resources: tuple[ResourceWeight, ...] = DEFAULT_WEIGHTS


@dataclass(frozen=True, slots=True)
class ShapePoint:
    """A point of the function from utilisation (0..100) to score (0..10)."""

    utilization: int
    score: int


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatioArgs:
    """The scoring strategy `RequestedToCapacityRatio` of `NodeResourcesFitArgs`."""

    shape: tuple[ShapePoint, ...] = (ShapePoint(0, 0), ShapePoint(100, 10))
    resources: tuple[ResourceWeight, ...] = DEFAULT_WEIGHTS


@dataclass(frozen=True, slots=True)
class GpuPackingArgs:
    """`gpu-packing` has no arguments of its own; `GpuSettings` says what a GPU is."""


@dataclass(frozen=True, slots=True)
class GpuFragmentationArgs:
    """`gpu-fragmentation` has no arguments of its own; `GpuSettings` says what a GPU is."""


PolicyArgs: TypeAlias = (
    TargetLoadPackingArgs
    | LoadVariationRiskBalancingArgs
    | LowRiskOverCommitmentArgs
    | PeaksArgs
    | DailyPeaksArgs
    | SelectorSpreadArgs
    | MostAllocatedArgs
    | RequestedToCapacityRatioArgs
    | GpuPackingArgs
    | GpuFragmentationArgs
)

DEFAULT_ARGS: Mapping[PolicyName, PolicyArgs] = {
    PolicyName.TARGET_LOAD_PACKING: TargetLoadPackingArgs(),
    PolicyName.LOAD_VARIATION_RISK_BALANCING: LoadVariationRiskBalancingArgs(),
    PolicyName.LOW_RISK_OVERCOMMITMENT: LowRiskOverCommitmentArgs(),
    PolicyName.PEAKS: PeaksArgs(),
    PolicyName.DAILY_PEAKS: DailyPeaksArgs(),
    PolicyName.PREDICTED_LOAD_PACKING: TargetLoadPackingArgs(),
    PolicyName.SELECTOR_SPREAD: SelectorSpreadArgs(),
    PolicyName.MOST_ALLOCATED: MostAllocatedArgs(),
    PolicyName.REQUESTED_TO_CAPACITY_RATIO: RequestedToCapacityRatioArgs(),
    PolicyName.GPU_PACKING: GpuPackingArgs(),
    PolicyName.GPU_FRAGMENTATION: GpuFragmentationArgs(),
}


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """One policy of `policies:`."""

    name: PolicyName
    weight: int
    args: PolicyArgs


def predicts(policies: Sequence[PolicySettings]) -> bool:
    """Return whether any of the policies needs the last week's load of nodes."""
    return any(policy.name is PolicyName.PREDICTED_LOAD_PACKING for policy in policies)


def usage_limits(policies: Sequence[PolicySettings]) -> Mapping[UsageName, float]:
    """Return the ratios of usage above which `daily-peaks` filters nodes out; empty if it is not among the policies."""
    return next((policy.args.limits for policy in policies if isinstance(policy.args, DailyPeaksArgs)), {})


@dataclass(frozen=True, slots=True)
class FilterSettings:
    """Hard limits of utilisation after placement, as ratios by resource."""

    limits: Mapping[LoadResource, float] = field(default_factory=dict)
    use: Literal["requests", "limits"] = "requests"
    """Whether requests or limits count as the load of a pod."""
    pools: Mapping[str, Mapping[LoadResource, float]] = field(default_factory=dict)
    """Limits of single pools (values of `poolLabel`), which replace the general limit of the same resource."""


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """The resources and annotations that describe GPUs."""

    resources: tuple[str, ...] = ("nvidia.com/gpu",)
    allocation_annotation: str = ""
    """Annotation of a pod that names its GPUs and shares, such as `0:500,1:1000` (index:milli); empty for none."""


@dataclass(frozen=True, slots=True)
class HotspotSettings:
    """The rules for hot nodes: a node is hot from `rounds` refreshes above a limit until `clear` refreshes below it."""

    limits: Mapping[LoadResource, float] = field(
        default_factory=lambda: {LoadResource.CPU: 0.8, LoadResource.MEMORY: 0.9}
    )
    rounds: int = 5
    clear: int = 3


@dataclass(frozen=True, slots=True)
class SchedulingSettings:
    """The whole file; the defaults are the behaviour of `nodes` without a file."""

    policies: tuple[PolicySettings, ...] = (PolicySettings(PolicyName.TARGET_LOAD_PACKING, 1, TargetLoadPackingArgs()),)
    filter: FilterSettings = FilterSettings()
    match: NodeMatch = "auto"
    queries: Mapping[LoadResource, str] = field(default_factory=dict)
    """Expressions that replace the built-in ones: a ratio (0..1) per `instance`."""
    matchers: Mapping[str, str] = field(default_factory=dict)
    """Label matchers (equality) that are added to each built-in expression."""
    gpu: GpuSettings = GpuSettings()
    pool_label: str = ""
    scheduler_names: frozenset[str] = frozenset()
    """`schedulerNames`: the values of `schedulerName` of the pods that the filter and the scores apply to; empty for
    all pods. A scheduler calls its extenders for the pods of all its profiles."""
    watcher_estimates: bool = False
    hotspots: HotspotSettings = HotspotSettings()
