"""Templates of new nodes of a group, made from one of its nodes or from a stated one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL
from adapter.foundation.cluster.values.state import ClusterNode
from adapter.foundation.objects.pod_requests import CPU
from adapter.foundation.objects.quantities import Format, Quantity
from adapter.foundation.objects.selectors import Operator
from recommender.kinds.cluster_size.model.groups import NodeTemplate
from recommender.kinds.cluster_size.model.resources import lacking_resources
from recommender.kinds.cluster_size.model.taints import PassingTaints

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterPod, Taint
    from adapter.foundation.objects.selectors import Selector

PODS: Final = "pods"
DEFAULT_PODS: Final = Quantity(110 * 10**9)
"""The number of pods that the kubelet and Cluster Autoscaler assume for a node that states none."""
GENERIC_LABELS: Final = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
"""Labels of every node whose template does not state them; DaemonSets select nodes by them."""
STABLE_SECONDS: Final = 60.0
"""A node that is younger than this may not have all of its DaemonSets' pods yet."""
NO_TAINTS: Final = PassingTaints()
"""The temporary taints that are known without any configuration."""


def template_name(group: str) -> str:
    """Return the name of a template's node. No Node can have it, since it has a slash."""
    return f"template/{group}"


def best_example(
    nodes: Iterable[ClusterNode], now: float, passing: PassingTaints = NO_TAINTS, offered: Iterable[str] = ()
) -> ClusterNode | None:
    """Return the node from which a template is made; None if no node is ready.

    Schedulable nodes come first, then those older than a minute, then those that offer the most resources, since a
    device plugin may not run yet, then the newest, which shows the current state of the group. A node is not used if it
    lacks one of the extended resources in `offered`, which the template of the group itself states.
    """
    expected = frozenset(offered)
    usable = [
        node
        for node in nodes
        if node.ready and not node.is_terminating and CPU in node.allocatable and not lacking_resources(node, expected)
    ]
    return min(usable, key=lambda node: _preference(node, now, passing), default=None)


def _preference(node: ClusterNode, now: float, passing: PassingTaints) -> tuple[bool, bool, int, float, str]:
    created = node.created or 0.0
    leaves = node.unschedulable or any(map(passing.is_passing, node.taints))
    offered = sum(amount.nanos > 0 for amount in node.allocatable.values())
    return leaves, now - created < STABLE_SECONDS, -offered, -created, node.name


def template_of_node(
    group: str, node: ClusterNode, pods: Iterable[ClusterPod], passing: PassingTaints = NO_TAINTS
) -> NodeTemplate:
    """Return the template of a group, made from one of its nodes.

    `pods` are the pods of DaemonSets and the mirror pods on it, which every new node has. The name, the hostname, and
    taints that describe a temporary state are removed.
    """
    sanitised = ClusterNode(
        name=template_name(group),
        labels={key: value for key, value in node.labels.items() if key != HOSTNAME_LABEL},
        taints=tuple(taint for taint in node.taints if not passing.is_passing(taint)),
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
    """Return the node of a template. Without a stated capacity, the allocatable amounts are also its capacity."""
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
    """Return an amount, in millicores for CPU, otherwise in bytes or a count."""
    return Quantity(amount * 10**6) if resource == CPU else Quantity(amount * 10**9, Format.BINARY_SI)


def labels_of_selector(selector: Selector) -> dict[str, str]:
    """Return the labels whose values a selector determines."""
    exact = {Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN}
    return {one.key: one.values[0] for one in selector.requirements if one.operator in exact and len(one.values) == 1}
