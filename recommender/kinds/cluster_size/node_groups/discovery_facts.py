"""Indexes of the cluster's objects for all sources of node groups, built once for each discovery."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.objects.grouping import group_values
from recommender.kinds.cluster_size.model.groups import NodeTemplate
from recommender.kinds.cluster_size.model.resources import amounts_of, extended_resources
from recommender.kinds.cluster_size.node_groups.daemon_sets import (
    daemon_pods,
    is_per_node_pod,
    one_of_each,
    pods_on,
    would_run,
)
from recommender.kinds.cluster_size.node_groups.templates import NO_TAINTS, PODS, best_example, template_of_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod, ClusterState, JsonObject, ObjectKind
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.size_settings import TrustedDaemonSets
    from recommender.kinds.cluster_size.model.taints import PassingTaints

NO_TEMPLATE = "it has no ready node and no template, so the capacity of a new node is not known"


@dataclass(frozen=True, slots=True)
class Discovered:
    """The result of one source."""

    groups: tuple[NodeGroup, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DiscoveryFacts:
    """The facts from which groups are discovered."""

    now: float
    nodes: Mapping[str, ClusterNode]
    """The nodes, by name."""
    daemons: tuple[ClusterPod, ...]
    """A pod of each DaemonSet, as its controller creates it."""
    companions: Mapping[str, tuple[ClusterPod, ...]]
    """The pods of DaemonSets and the mirror pods of each node."""
    trusted: TrustedDaemonSets
    objects: Mapping[ObjectKind, Observed[tuple[JsonObject, ...]] | Unknown]
    problems: tuple[str, ...] = field(default=())
    passing: PassingTaints = NO_TAINTS
    """Taints that no template has."""
    nodes_problem: str = ""
    """Why some nodes of the cluster may be missing here; empty if all are known."""

    def objects_of(self, kind: ObjectKind) -> tuple[JsonObject, ...] | Unknown:
        """Return the objects of a kind."""
        found = self.objects.get(kind, Unknown(f"{kind.resource} are not read"))
        return found if isinstance(found, Unknown) else found.value

    def template(
        self, group: str, members: Iterable[str], stated: ClusterNode | None, source: str
    ) -> NodeTemplate | None:
        """Return the template of a group: made from one of its ready nodes or from the stated node; None without both.

        Ready nodes without GPUs are not used if the stated node has GPUs, since theirs may not be available yet.
        """
        present = [self.nodes[name] for name in members if name in self.nodes]
        offered = () if stated is None else extended_resources(stated)
        example = best_example(present, self.now, self.passing, offered)
        if example is not None:
            companions = one_of_each(self.companions.get(example.name, ()))
            made = template_of_node(group, example, companions, self.passing)
            return _shared_out(replace(made, pods=would_run(made.node, made.pods, self.daemons)), self.trusted)
        return None if stated is None else self.stated_template(stated, source)

    def stated_template(self, node: ClusterNode, source: str) -> NodeTemplate:
        """Return a template of the node that `source` states, with the pods of the DaemonSets that would run on it."""
        meant = _shared_out(NodeTemplate(node, would_run(node, self.daemons, self.daemons), source), self.trusted)
        return replace(meant, pods=pods_on(node, meant.pods))


def discovery_facts_of(
    cluster: ClusterState, trusted: TrustedDaemonSets, now: float, passing: PassingTaints = NO_TAINTS
) -> DiscoveryFacts | Unknown:
    """Return the facts arranged for discovery; Unknown if nodes or pods are not known."""
    if isinstance(cluster.nodes, Unknown):
        return cluster.nodes
    if isinstance(cluster.pods, Unknown):
        return cluster.pods
    workloads = () if isinstance(cluster.workloads, Unknown) else cluster.workloads.value
    daemon_sets = {(one.namespace, one.name): one.uid for one in workloads if one.kind == "DaemonSet"}
    uids = {node.name: node.uid for node in cluster.nodes.value}
    companions = group_values(
        (pod.node, pod)
        for pod in cluster.pods.value
        if pod.node and is_per_node_pod(pod, daemon_sets, uids.get(pod.node, ""))
    )
    problems: tuple[str, ...] = ()
    if isinstance(cluster.workloads, Unknown):
        consequence = "nodes made from a template seem to have more room than they will have"
        problems = (f"DaemonSets are not known, so {consequence}: {cluster.workloads.reason}",)
    return DiscoveryFacts(
        now=now,
        nodes={node.name: node for node in cluster.nodes.value},
        daemons=daemon_pods(workloads),
        companions={node: tuple(pods) for node, pods in companions.items()},
        trusted=trusted,
        objects=cluster.objects,
        problems=problems,
        passing=passing,
        nodes_problem=_nodes_problem(cluster),
    )


def _nodes_problem(cluster: ClusterState) -> str:
    left_out = (one.reason for one in cluster.left_out if one.kind == "Node")
    return next((f"not all nodes are known: {reason}" for reason in (*left_out, *cluster.problems)), "")


def _shared_out(template: NodeTemplate, trusted: TrustedDaemonSets) -> NodeTemplate:
    """Return a template with those of its pods that are within the shares of their namespaces, in their order.

    The DaemonSets of one namespace together may use the configured share of each resource that the node offers,
    including the number of pods. Anyone who can create a DaemonSet could otherwise make every new node seem full, so
    that no group grows for anybody. Namespaces that are trusted have no limit.
    """
    offered = amounts_of(template.node.allocatable)
    taken: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    counted = []
    left_out: dict[str, str] = {}
    for pod in template.pods:
        asked = {**pod.resources.requests, PODS: 1}
        if pod.namespace not in trusted.namespaces:
            before = taken[pod.namespace]
            over = _most(asked, before, offered, trusted.share_ratio)
            if over is not None:
                left_out[_owner(pod)] = over
                continue
            for resource, amount in asked.items():
                before[resource] += amount
        counted.append(pod)
    return replace(template, pods=tuple(counted), left_out=left_out)


def _most(
    asked: Mapping[str, int], taken: Mapping[str, int], offered: Mapping[str, int], share_ratio: float
) -> str | None:
    """Return the resource of which a namespace would exceed its share; None if it exceeds none."""
    for resource, amount in asked.items():
        total = taken.get(resource, 0) + amount
        whole = offered.get(resource, 0)
        if amount > 0 and whole > 0 and total > Fraction(str(share_ratio)) * whole:
            return f"{100 * total / whole:.0f}% of {resource}"
    return None


def _owner(pod: ClusterPod) -> str:
    owner = pod.controller
    kind, name = ("Pod", pod.name) if owner is None or not owner.is_daemon_set else (owner.kind, owner.name)
    return f"{kind} {pod.namespace}/{name}"
