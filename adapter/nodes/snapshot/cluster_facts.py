"""The facts that the snapshot takes from the cluster. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import ClusterNeeds, Observed
from adapter.nodes.watcher.document import NodeTopology

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.placed_pods import PlacedPods
    from adapter.foundation.cluster.values.state import ClusterNode, ClusterState, PodSelector, Unknown
    from adapter.nodes.model.scheduling_settings import SchedulingSettings

ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


@dataclass(frozen=True, slots=True, eq=False)
class NodeFacts:
    """Nodes and pods at one moment."""

    nodes: tuple[ClusterNode, ...] | None = None
    """Nodes by name; None if Node objects are not known."""
    why_unknown: str = "no cluster is configured: set --kubeconfig or --objects"
    """Why Node objects are not known."""
    pods: PlacedPods | None = None
    selectors: tuple[PodSelector, ...] = ()
    problems: tuple[str, ...] = ()
    """Which objects are left out and why."""


def node_facts(state: ClusterState, pods: Observed[PlacedPods] | Unknown) -> NodeFacts:
    """Return the facts in a state of the cluster."""
    return NodeFacts(
        nodes=_by_name(state.nodes.value) if isinstance(state.nodes, Observed) else None,
        why_unknown="" if isinstance(state.nodes, Observed) else state.nodes.reason,
        pods=pods.value if isinstance(pods, Observed) else None,
        selectors=state.pod_selectors.value if isinstance(state.pod_selectors, Observed) else (),
        problems=(*state.problems, *state.placement_problems),
    )


def needs_of(settings: SchedulingSettings) -> ClusterNeeds:
    """Return which objects of the cluster must be watched."""
    return ClusterNeeds(nodes=True, pods=True, pod_selectors=True, gpu_annotation=settings.gpu.allocation_annotation)


def node_topology(nodes: Iterable[ClusterNode] | None, pool_label: str) -> NodeTopology:
    """Return the zone of each node, and the value of the pool label."""
    listed = () if nodes is None else tuple(nodes)
    zones = {node.name: next(filter(None, (node.labels.get(key) for key in ZONE_LABELS)), "") for node in listed}
    pools = {node.name: node.labels.get(pool_label, "") for node in listed} if pool_label else {}
    return NodeTopology(zones, pools)


def _by_name(nodes: tuple[ClusterNode, ...]) -> tuple[ClusterNode, ...]:
    """Return the nodes sorted by name: the same tuple if it is sorted, so that `is` shows that nothing has changed."""
    if all(one.name < other.name for one, other in pairwise(nodes)):
        return nodes
    return tuple(sorted(nodes, key=lambda node: node.name))
