"""What all sources of node groups look things up in, arranged once for each discovery."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.cluster.state import Observed, Unknown
from recommender.cluster_size.model.groups import NodeTemplate
from recommender.cluster_size.node_groups.daemon_sets import comes_with_the_node, daemon_pods, pods_on
from recommender.cluster_size.node_groups.templates import best_example, template_of_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.cluster.state import ClusterNode, ClusterPod, ClusterState, JsonObject, ObjectKind
    from recommender.cluster_size.model.groups import NodeGroup

NO_TEMPLATE = "it has no ready node and no template, so nobody knows what a new node would hold"


@dataclass(frozen=True, slots=True)
class Discovered:
    """What one source has found."""

    groups: tuple[NodeGroup, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DiscoveryFacts:
    """The facts that groups are found in."""

    now: float
    nodes: Mapping[str, ClusterNode]
    """By name."""
    daemons: tuple[ClusterPod, ...]
    """A pod of each DaemonSet, as its controller makes it."""
    companions: Mapping[str, tuple[ClusterPod, ...]]
    """By node, its pods of DaemonSets and its mirror pods."""
    objects: Mapping[ObjectKind, Observed[tuple[JsonObject, ...]] | Unknown]
    problems: tuple[str, ...] = field(default=())

    def listed(self, kind: ObjectKind) -> tuple[JsonObject, ...] | Unknown:
        """Return the objects of a kind."""
        found = self.objects.get(kind, Unknown(f"{kind.resource} are not read"))
        return found if isinstance(found, Unknown) else found.value

    def template(
        self, group: str, members: Iterable[str], stated: ClusterNode | None, source: str
    ) -> NodeTemplate | None:
        """Return the template of a group: of one of its ready nodes, else of the node that is stated."""
        example = best_example((self.nodes[name] for name in members if name in self.nodes), self.now)
        if example is not None:
            return template_of_node(group, example, self.companions.get(example.name, ()))
        return None if stated is None else self.stated(stated, source)

    def stated(self, node: ClusterNode, source: str) -> NodeTemplate:
        """Return the template that is stated, with the pods of the DaemonSets that would run on it."""
        return NodeTemplate(node, pods_on(node, self.daemons), source)


def world_of(cluster: ClusterState, now: float) -> DiscoveryFacts | Unknown:
    """Return the facts arranged for discovery; Unknown if nodes or pods are not known."""
    if isinstance(cluster.nodes, Unknown):
        return cluster.nodes
    if isinstance(cluster.pods, Unknown):
        return cluster.pods
    companions: dict[str, list[ClusterPod]] = {}
    workloads = () if isinstance(cluster.workloads, Unknown) else cluster.workloads.value
    daemon_sets = {(one.namespace, one.name) for one in workloads if one.kind == "DaemonSet"}
    for pod in cluster.pods.value:
        if pod.node and comes_with_the_node(pod, daemon_sets):
            companions.setdefault(pod.node, []).append(pod)
    problems: tuple[str, ...] = ()
    daemons: tuple[ClusterPod, ...] = ()
    if isinstance(cluster.workloads, Unknown):
        consequence = "nodes that are made of a template seem to have more room than they will"
        problems = (f"DaemonSets are not known, so {consequence}: {cluster.workloads.reason}",)
    else:
        daemons = daemon_pods(cluster.workloads.value)
    return DiscoveryFacts(
        now=now,
        nodes={node.name: node for node in cluster.nodes.value},
        daemons=daemons,
        companions={node: tuple(pods) for node, pods in companions.items()},
        objects=cluster.objects,
        problems=problems,
    )
