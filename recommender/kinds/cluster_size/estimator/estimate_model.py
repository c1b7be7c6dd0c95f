"""Values of the estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape


@dataclass(frozen=True, slots=True, eq=False)
class PodGroup:
    """Pending pods of one controller that are alike: an equivalence group. Never empty."""

    shape: PodShape
    pods: tuple[ClusterPod, ...]


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node that an estimate opens."""

    name: str
    """The node's own name, which is also its `kubernetes.io/hostname`."""
    pods: tuple[ClusterPod, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The pods that new nodes of one group can hold."""

    node_count: int
    """How many nodes received a pod, as Cluster Autoscaler counts them; an existing node that takes pods because of a
    hostname constraint is counted too."""
    pods: tuple[ClusterPod, ...]
    """The pods that are placed."""
    new_nodes: tuple[NewNode, ...] = ()
    placed_on_existing: tuple[tuple[ClusterPod, str], ...] = ()
    """Pods placed on existing nodes, each with the name of its node."""
    limit: str = ""
    """Which limit ended the estimate; empty if none did."""
    opened: int = 0
    """How many nodes were opened, including those that received no pod."""


@dataclass(frozen=True, slots=True)
class ExpansionOption:
    """A group, with the effect of its growth."""

    group: NodeGroup
    estimate: Estimate
    similar: tuple[str, ...] = ()
    """Groups over which the nodes may be balanced."""
