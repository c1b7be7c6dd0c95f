"""What scores are made of: one column for each fact, in the order of the nodes; and the pod to be placed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.nodes.model.kept_rows import KeptRows
from adapter.objects.pod_requests import PodResources

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.loads import LoadResource


@dataclass(frozen=True, slots=True, eq=False)
class NodeColumns:
    """All nodes. CPU in milli, memory in bytes, other resources as counts; arrays of shape (nodes,), never written to.

    Resources are named as in Kubernetes (`cpu`, `memory`, `pods`, `nvidia.com/gpu`); one that a node
    does not have is 0.
    """

    names: tuple[str, ...]
    index: Mapping[str, int]
    capacity: Mapping[str, Floats]
    allocatable: Mapping[str, Floats]
    requested: Mapping[str, Floats]
    """Sums over the pods that are bound to the node and have not ended, as the scheduler counts them."""
    non_zero_requested: Mapping[str, Floats]
    """`cpu` and `memory` with the scheduler's defaults (100m, 200 MiB) for containers without requests."""
    limits: Mapping[str, Floats]
    """Sums of limits, those of each pod raised to at least its requests (`cpu`, `memory`)."""
    mean_ratio: Mapping[LoadResource, Floats]
    """Measured average (15 minutes, or the window that stands in for it); NaN if unknown."""
    std_ratio: Mapping[LoadResource, Floats]
    """Standard deviation of the same window; NaN if unknown."""
    recent_cpu_prediction_milli: Floats
    """CPU that TargetLoadPacking predicts for recently bound pods, as far as the metrics do not contain it yet."""
    recent_requests: Mapping[LoadResource, Floats]
    """Requests of recently bound pods that the metrics do not contain yet: milli for CPU, bytes for memory."""
    recent_limits: Mapping[LoadResource, Floats]
    """Likewise their limits, raised to at least the requests."""
    zone: NDArray[np.int32]
    """Number of the node's zone (region and zone together); -1 for none."""
    pool: tuple[str, ...]
    """Value of the pool label of each node; empty for none."""
    gpu_left_milli: tuple[tuple[int, ...], ...]
    """What is left of each GPU of each node (1000 for a whole one)."""
    kept: KeptRows = field(default_factory=KeptRows, repr=False, compare=False)
    """What policies have computed from these columns alone."""


@dataclass(frozen=True, slots=True)
class PendingPod:
    """The pod to be placed."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    scheduler_name: str = "default-scheduler"
    resources: PodResources = field(default_factory=PodResources)
    has_spread_constraints: bool = False
    gpu_count: int = 0
    gpu_milli: int = 0
    """What the pod needs of each of its GPUs: 1000 for whole ones; 0 without GPUs."""
    owner_selector: str = ""
    """Selector (kubectl's syntax) of the Services and the controller that the pod belongs to; empty for none."""
