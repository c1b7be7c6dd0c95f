"""Templates: what a new node of a group looks like, from one of its nodes or from what is stated of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.cluster.scheduling.constraints import HOSTNAME_LABEL
from adapter.cluster.state import ClusterNode
from adapter.objects.pod_requests import CPU
from adapter.objects.quantities import Format, Quantity
from adapter.objects.selectors import Operator
from recommender.cluster_size.model.groups import NodeTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.cluster.state import ClusterPod, Taint
    from adapter.objects.selectors import Selector

PODS: Final = "pods"
DEFAULT_PODS: Final = Quantity(110 * 10**9)
"""As many pods as the kubelet and Cluster Autoscaler assume for a node that does not state it."""
GENERIC_LABELS: Final = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
"""Labels of every node whose template does not state them; DaemonSets select nodes by them."""
STABLE_SECONDS: Final = 60.0
"""A node that is younger may not have all of its DaemonSets' pods yet."""

_PASSING_TAINTS: Final = frozenset(
    {
        "DeletionCandidateOfClusterAutoscaler",
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
        "karpenter.sh/unregistered",
        "node.cloudprovider.kubernetes.io/shutdown",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cluster.x-k8s.io/outdated-revision",
        "node.cluster.x-k8s.io/uninitialized",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/out-of-service",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
    }
)
"""Taints that describe the state of one node, not what its group is for."""
_PASSING_PREFIXES: Final = (
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "status-taint.cluster-autoscaler.kubernetes.io/",
)


def template_name(group: str) -> str:
    """Return the name of a template's node. No Node can have it, since it has a slash."""
    return f"template/{group}"


def best_example(nodes: Iterable[ClusterNode], now: float) -> ClusterNode | None:
    """Return the node from which a template is made; None if there is none that is ready.

    Schedulable nodes come first, then those older than a minute, then those that offer the most resources, since a
    device plugin may not run yet, then the newest, which shows the group as it is now.
    """
    usable = [node for node in nodes if node.ready and not node.is_terminating and CPU in node.allocatable]
    return min(usable, key=lambda node: _preference(node, now), default=None)


def _preference(node: ClusterNode, now: float) -> tuple[bool, bool, int, float, str]:
    created = node.created or 0.0
    leaves = node.unschedulable or any(is_passing(taint) for taint in node.taints)
    offered = sum(amount.nanos > 0 for amount in node.allocatable.values())
    return leaves, now - created < STABLE_SECONDS, -offered, -created, node.name


def template_of_node(group: str, node: ClusterNode, pods: Iterable[ClusterPod]) -> NodeTemplate:
    """Return the template of a group as one of its nodes shows it.

    `pods` are those of DaemonSets and mirror pods on it, which every new node has. The name, the hostname, and taints
    that describe a passing state are taken away.
    """
    sanitised = ClusterNode(
        name=template_name(group),
        labels={key: value for key, value in node.labels.items() if key != HOSTNAME_LABEL},
        taints=tuple(taint for taint in node.taints if not is_passing(taint)),
        unschedulable=False,
        conditions={"Ready": "True"},
        created=None,
        capacity=node.capacity,
        allocatable=node.allocatable,
    )
    unbound = tuple(replace(pod, node="", bound_at=None) for pod in pods)
    return NodeTemplate(sanitised, unbound, f"node {node.name}")


def stated_node(
    group: str,
    allocatable: Mapping[str, Quantity],
    labels: Mapping[str, str],
    taints: Iterable[Taint],
    capacity: Mapping[str, Quantity] | None = None,
) -> ClusterNode:
    """Return the node that is made of what is stated. Without a capacity of its own, all of it is allocatable."""
    whole = {PODS: DEFAULT_PODS, **allocatable}
    kept = {key: value for key, value in labels.items() if key != HOSTNAME_LABEL}
    return ClusterNode(
        name=template_name(group),
        labels=GENERIC_LABELS | kept,
        taints=tuple(taints),
        unschedulable=False,
        conditions={"Ready": "True"},
        created=None,
        capacity={**whole, **(capacity or {})},
        allocatable=whole,
    )


def quantity_of(resource: str, amount: int) -> Quantity:
    """Return an amount, in milli for CPU, otherwise in bytes or a count."""
    return Quantity(amount * 10**6) if resource == CPU else Quantity(amount * 10**9, Format.BINARY_SI)


def labels_of_selector(selector: Selector) -> dict[str, str]:
    """Return the labels that a selector leaves no choice about."""
    exact = {Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN}
    return {one.key: one.values[0] for one in selector.requirements if one.operator in exact and len(one.values) == 1}


def is_passing(taint: Taint) -> bool:
    """Whether a taint describes a passing state of one node."""
    return taint.key in _PASSING_TAINTS or taint.key.startswith(_PASSING_PREFIXES)
