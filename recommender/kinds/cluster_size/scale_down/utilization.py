"""Calculates the utilisation of a node by requests, not by usage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.pod_requests import CPU, MEMORY
from recommender.kinds.cluster_size.model.resources import has_gpu_label, is_gpu
from recommender.kinds.cluster_size.scale_down.pod_kinds import is_daemon_set_pod, is_long_terminating, is_mirror_pod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo

_DEFAULT_GPU: Final = "nvidia.com/gpu"
"""The GPU resource assumed for a node if only its label says that it has GPUs."""

_ALWAYS_COUNTED: Final = frozenset({CPU, MEMORY})
"""The resources whose total requests a node of the snapshot already keeps."""


class UtilizationError(ValueError):
    """The utilisation of a node cannot be calculated; the message says why."""


@dataclass(frozen=True, slots=True)
class Utilization:
    """The share of a node that is requested."""

    ratio: float
    resource: str
    """The resource of which the largest share is requested."""
    is_of_gpu: bool = False


@dataclass(frozen=True, slots=True)
class UtilizationOptions:
    """Which pods count. The requests of the others are also subtracted from the node's resources."""

    now: float
    """Seconds since the Unix epoch, for pods that should have ended long ago."""
    ignore_daemon_sets: bool = False
    ignore_mirror_pods: bool = False
    gpu_label: str = ""
    """A further label of nodes with GPUs; empty if there is none."""


def node_utilization(info: NodeInfo, options: UtilizationOptions) -> Utilization:
    """Return the larger of the shares of CPU and memory; for a node with GPUs, only the share of its GPUs.

    GPUs that the node does not offer now count as unused. Raises UtilizationError if the node offers no CPU or memory.
    """
    gpus = _gpu_resources(info, options.gpu_label)
    if gpus:
        shares = [(_gpu_share(info, resource, options), resource) for resource in gpus]
        ratio, resource = max(shares)
        return Utilization(ratio, resource, is_of_gpu=True)
    cpu, memory = _share(info, CPU, options), _share(info, MEMORY, options)
    return Utilization(cpu, CPU) if cpu > memory else Utilization(memory, MEMORY)


def _gpu_resources(info: NodeInfo, label: str) -> Sequence[str]:
    """Return the names of the GPUs, or parts of GPUs, that the node has, or will have by its labels."""
    capacity, allocatable = info.node.capacity, info.allocatable
    named = [name for name in (*capacity, *allocatable) if "/" in name and is_gpu(name)]
    # Most nodes have none, and then no amount has to be read.
    gpus = named and sorted(
        name for name in set(named) if (name in capacity and capacity[name].nanos > 0) or allocatable.get(name, 0) > 0
    )
    return gpus or ((_DEFAULT_GPU,) if has_gpu_label(info.node, label) else ())


def _gpu_share(info: NodeInfo, resource: str, options: UtilizationOptions) -> float:
    return _share(info, resource, options) if info.allocatable.get(resource, 0) > 0 else 0.0


def _share(info: NodeInfo, resource: str, options: UtilizationOptions) -> float:
    allocatable = info.allocatable.get(resource, 0)
    if allocatable <= 0:
        raise UtilizationError(f"the node offers no {resource}")
    ignores = options.ignore_daemon_sets or options.ignore_mirror_pods
    if not ignores and resource in _ALWAYS_COUNTED and not _has_terminating(info):
        return info.requested.get(resource, 0) / allocatable
    requested = 0
    for pod in info.pods.values():
        amount = pod.resources.requests.get(resource, 0)
        if not amount:
            continue
        if ignores and _is_ignored(pod, options):
            allocatable -= amount
        elif not (pod.is_terminating and is_long_terminating(pod, options.now)):
            requested += amount
    if allocatable <= 0:
        raise UtilizationError(f"DaemonSets and mirror pods request all the {resource} that the node offers")
    return requested / allocatable


def _has_terminating(info: NodeInfo) -> bool:
    for pod in info.pods.values():  # noqa: SIM110 - called for every node, and a generator takes twice as long
        if pod.is_terminating:
            return True
    return False


def _is_ignored(pod: ClusterPod, options: UtilizationOptions) -> bool:
    if options.ignore_daemon_sets and is_daemon_set_pod(pod):
        return True
    return options.ignore_mirror_pods and is_mirror_pod(pod)
