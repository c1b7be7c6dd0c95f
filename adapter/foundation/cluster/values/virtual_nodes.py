"""Nodes that do not represent a machine of their own: those of virtual-kubelet and of EKS Fargate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode

_VIRTUAL_KUBELET: Final = ("type", "virtual-kubelet")
VIRTUAL_LABELS: Final = (_VIRTUAL_KUBELET, ("eks.amazonaws.com/compute-type", "fargate"))
_VIRTUAL_TAINTS: Final = frozenset({"virtual-kubelet.io/provider", "eks.amazonaws.com/compute-type"})
"""Taints by which virtual-kubelet's node and EKS's Fargate nodes keep other pods away."""


def is_virtual(node: ClusterNode) -> bool:
    """Return whether the node belongs to virtual-kubelet or EKS Fargate, whose sizes are not those of machines."""
    for key, value in VIRTUAL_LABELS:
        if node.labels.get(key) == value:
            return True
    return not _VIRTUAL_TAINTS.isdisjoint(taint.key for taint in node.taints) if node.taints else False


def is_of_virtual_kubelet(node: ClusterNode) -> bool:
    """Return whether the node belongs to virtual-kubelet, by the label that Cluster Autoscaler reads."""
    key, value = _VIRTUAL_KUBELET
    return node.labels.get(key) == value
