"""Node objects of which only names and addresses are needed."""

from __future__ import annotations

from adapter.foundation.cluster.values.state import ClusterNode, NodeAddress


def cluster_node(name: str, *addresses: NodeAddress, hostname: str = "") -> ClusterNode:
    """Return a node with these addresses, and with the label `kubernetes.io/hostname` if one is given."""
    labels = {"kubernetes.io/hostname": hostname} if hostname else {}
    return ClusterNode(
        name=name,
        labels=labels,
        taints=(),
        unschedulable=False,
        conditions={"Ready": "True"},
        created=None,
        capacity={},
        allocatable={},
        addresses=addresses,
    )


def internal(address: str) -> NodeAddress:
    return NodeAddress("InternalIP", address)
