"""The settings of sizes that follow usage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from recommender.kinds.resizing.resize_settings import ResizeSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.kinds.kind import Recommendation

TARGET_PERCENTILE: Final = 0.9
MARGIN_RATIO: Final = 0.15
OWN_PERCENTILE_MARGIN_RATIO: Final = 0.05
"""The margin if each container has its own percentile, which already covers more of the container's time."""
HISTORY_SECONDS: Final = 8 * 86_400.0
LONGEST_HISTORY_SECONDS: Final = 15 * 86_400.0
_TARGETS_A_SHARD: Final = 400


@dataclass(frozen=True, slots=True)
class WorkloadsOfKind:
    """Every workload of a kind is a target."""

    kind: str = "Deployment"
    """The kind of the workloads: one of `RESIZED_KINDS`."""
    namespaces: tuple[str, ...] = ()
    """The namespaces of the workloads; empty for all namespaces."""
    max_targets: int = 1000


@dataclass(frozen=True, slots=True)
class FromUsage:
    """How requests are derived from usage."""

    cpu: str = ""
    """PromQL of cores by namespace, pod and container; empty for cAdvisor's series."""
    memory: str = ""
    """PromQL of bytes by namespace, pod and container; empty for cAdvisor's series."""
    percentile_ratio: float | None = TARGET_PERCENTILE
    """Share of the weighted samples that the target covers, 0 to 1; None if each container has its own."""
    margin_ratio: float = MARGIN_RATIO
    history_seconds: float = HISTORY_SECONDS


@dataclass(frozen=True, slots=True)
class ResourcesSettings:
    """The settings of one recommendation."""

    from_usage: FromUsage
    for_each: WorkloadsOfKind | None = None
    """The workloads; None if the targets are listed."""
    resize: ResizeSettings = field(default_factory=ResizeSettings)
    also_with_hpa: bool = False
    """Whether a request is changed even if an HPA follows its resource."""
    least: Mapping[str, int] = field(default_factory=dict)
    """The least request of each container by resource, in millicores or bytes."""
    most: Mapping[str, int] = field(default_factory=dict)


def memory_shards(targets: int) -> int:
    """Return how many ConfigMaps the memories of this many targets take, a power of two.

    The chart computes the same number for the rights on these ConfigMaps.
    """
    shards = 1
    while shards * _TARGETS_A_SHARD < targets:
        shards *= 2
    return shards


def resources_settings(recommendations: Iterable[Recommendation]) -> dict[str, ResourcesSettings]:
    """Return the settings of all recommendations of the kind `resources` by name."""
    return {each.policy.name: each.subject for each in recommendations if isinstance(each.subject, ResourcesSettings)}
