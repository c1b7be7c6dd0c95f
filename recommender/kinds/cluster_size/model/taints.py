"""Temporary taints: those of a node that is starting, and those that describe the state of one node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode, Taint

TO_BE_DELETED_TAINT: Final = "ToBeDeletedByClusterAutoscaler"
"""The taint of a node that an autoscaler is removing; kube-proxy and cloud controllers send it no new connections."""
_STARTUP_TAINTS: Final = frozenset(
    {
        "karpenter.sh/unregistered",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cluster.x-k8s.io/uninitialized",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/not-ready",
    }
)
_STARTUP_PREFIXES: Final = (
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
)
_AGENT_SUFFIX: Final = "/agent-not-ready"
"""The suffix of taints that wait for an agent of the network or of storage: `node.cilium.io/agent-not-ready`,
`ebs.csi.aws.com/agent-not-ready`."""
_STATE_TAINTS: Final = frozenset(
    {
        "DeletionCandidateOfClusterAutoscaler",
        "NodeWithImpairedVolumes",
        TO_BE_DELETED_TAINT,
        "cloud.google.com/impending-node-termination",
        "karpenter.sh/disrupted",
        "node.cloudprovider.kubernetes.io/shutdown",
        "node.cluster.x-k8s.io/outdated-revision",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/out-of-service",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
    }
)
_STATE_PREFIX: Final = "status-taint.cluster-autoscaler.kubernetes.io/"


def is_leaving(node: ClusterNode) -> bool:
    """Return whether a node is being deleted, or its taint says that an autoscaler is removing it."""
    return node.is_terminating or any(taint.key == TO_BE_DELETED_TAINT for taint in node.taints)


@dataclass(frozen=True, slots=True)
class PassingTaints:
    """The temporary taints, including those of the configuration. No template has them."""

    startup: tuple[str, ...] = ()
    """The prefixes of keys of further taints that a node has while it is starting (`startup-taint`)."""
    status: tuple[str, ...] = ()
    """The prefixes of keys of further taints that describe the state of one node (`status-taint`)."""

    def is_startup(self, taint: Taint) -> bool:
        """Return whether a node with the taint cannot hold pods yet, but is about to."""
        key = taint.key
        prefixes = (*_STARTUP_PREFIXES, *self.startup)
        return key in _STARTUP_TAINTS or key.endswith(_AGENT_SUFFIX) or key.startswith(prefixes)

    def is_passing(self, taint: Taint) -> bool:
        """Return whether the taint says nothing about the purpose of its node's group."""
        key = taint.key
        return key in _STATE_TAINTS or key.startswith((_STATE_PREFIX, *self.status)) or self.is_startup(taint)
