"""Resources of nodes: amounts as whole numbers, and extended ones, such as GPUs, which a ready node may offer later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.pod_requests import units_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.foundation.objects.quantities import Quantity

_GPU_LABELS: Final = frozenset(
    {
        "accelerator",
        "cloud.google.com/gke-accelerator",
        "cluster-api/accelerator",
        "k8s.amazonaws.com/accelerator",
        "kubernetes.azure.com/accelerator",
        "nvidia.com/gpu.present",
    }
)
"""Labels of nodes with GPUs, whether or not these can be allocated yet (`GPULabel()` of the providers)."""
_FALSE: Final = frozenset({"", "false", "none"})
_GPU_SUFFIX: Final = "/gpu"
_OTHER_GPUS: Final = frozenset({"habana.ai/gaudi", "microsoft.com/directx"})
_GPU_PREFIXES: Final = ("nvidia.com/mig-", "gpu.intel.com/")


def amounts_of(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    """Return amounts as whole numbers: CPU in millicores, memory and storage in bytes, others as counts."""
    return {resource: units_of(resource, quantity) for resource, quantity in quantities.items()}


def capacity_of(node: ClusterNode) -> dict[str, int]:
    """Return the capacity of a node; resources that it does not state are taken from the allocatable ones."""
    return amounts_of({**node.allocatable, **node.capacity})


def is_gpu(resource: str) -> bool:
    """Return whether a resource stands for GPUs or parts of GPUs."""
    return resource.endswith(_GPU_SUFFIX) or resource.startswith(_GPU_PREFIXES) or resource in _OTHER_GPUS


def has_gpu_label(node: ClusterNode, further: str = "") -> bool:
    """Whether a label says that the node has GPUs; `further` is the label that its group's provider uses, if any."""
    labels = node.labels
    if further not in labels and _GPU_LABELS.isdisjoint(labels):
        return False  # as for most nodes, and this is asked of every node
    return any(labels[label].lower() not in _FALSE for label in (*_GPU_LABELS, further) if label in labels)


def extended_resources(node: ClusterNode) -> frozenset[str]:
    """Return the extended resources that a node offers."""
    return frozenset(name for name, amount in node.allocatable.items() if "/" in name and amount.nanos > 0)


def lacking_resources(node: ClusterNode, expected: Iterable[str]) -> tuple[str, ...]:
    """Return the expected resources that the node does not offer now, sorted."""
    return tuple(
        sorted(name for name in expected if (amount := node.allocatable.get(name)) is None or amount.nanos <= 0)
    )
