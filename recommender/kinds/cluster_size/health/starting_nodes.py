"""Nodes that cannot hold pods yet, but are about to: they count as their group's template until they are late.

A node is Ready before its device plugin, its network or its storage is, for minutes with some GPUs. If it counted in
that state, a further node would be added for the pods that it is about to hold (`utils/kubernetes/ready.go`,
`processors/customresources`, `utils/taints` of Cluster Autoscaler).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.model.resources import extended_resources, has_gpu_label, is_gpu, lacking_resources

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.model.taints import PassingTaints

_GPUS: Final = "its GPUs, which its labels state, cannot be allocated yet"
_HINDERING_CONDITIONS: Final = ("DiskPressure", "NetworkUnavailable")


def starting_nodes(situation: ClusterSituation, settings: ClusterSizeSettings) -> Mapping[str, str]:
    """Return the nodes that are on their way, with what each is waiting for.

    A node that takes longer than `maxNodeProvisionTime` counts as it is, like a cordoned node.
    """
    groups = {group.name: group for group in situation.groups.groups}
    longest_of = {name: settings.provision_seconds_of(group) for name, group in groups.items()}
    offered: dict[str, frozenset[str]] = {}
    found: dict[str, str] = {}
    established: set[str] = set()
    without_gpus: dict[str, str] = {}
    for node in situation.nodes:
        group_name = situation.groups.group_of.get(node.name, "")
        longest = longest_of.get(group_name, settings.max_node_provision_seconds)
        if node.created is None or situation.known_seconds_since(node.created) >= longest:
            established.add(node.name)
            continue
        group = groups.get(group_name)
        expected: frozenset[str] = frozenset()
        if group is not None and group.template is not None:
            expected = offered.setdefault(group.name, extended_resources(group.template.node))
        awaited = awaited_of(node, expected, settings.passing_taints)
        if awaited:
            found[node.name] = awaited
        elif _lacks_gpus(node, "" if group is None else group.gpu_label):
            without_gpus[node.name] = group_name
    if without_gpus:
        started = _with_claimed_gpus(without_gpus, established, situation)
        found |= dict.fromkeys(without_gpus.keys() - started, _GPUS)
    return found


def _with_claimed_gpus(
    young: Mapping[str, str], established: Container[str], situation: ClusterSituation
) -> frozenset[str]:
    """Return which of these nodes, given with their groups, need not wait for GPUs that a label states.

    GPUs that pods get by ResourceClaims never become an extended resource. That is so in a group in which no node has
    such a resource, and a node is established or runs a pod with claims. A node without a group is judged by itself.
    """
    group_of = situation.groups.group_of
    with_claims = {pod.node for pod in situation.pods if pod.node and _has_claims(pod)}
    plugged: set[str] = set()
    claimed: set[str] = set()
    for node in situation.nodes:
        group = group_of.get(node.name, "")
        if any(map(is_gpu, extended_resources(node))):
            plugged.add(group)
        elif node.name in with_claims or (node.name in established and node.ready):
            claimed.add(group)
    claimed -= {*plugged, ""}
    return frozenset(name for name, group in young.items() if group in claimed or (not group and name in with_claims))


def _has_claims(pod: ClusterPod) -> bool:
    return pod.facts is not None and bool(pod.facts.scheduling.resource_claims)


def _lacks_gpus(node: ClusterNode, gpu_label: str) -> bool:
    """Return whether a label says that a node has GPUs, and it offers none as an extended resource."""
    return has_gpu_label(node, gpu_label) and not any(map(is_gpu, extended_resources(node)))


def awaited_of(node: ClusterNode, expected: frozenset[str], passing: PassingTaints) -> str:
    """Return what a node lacks before it can hold pods; empty if it lacks nothing.

    `expected` are the extended resources that nodes of its group have.
    """
    if not node.ready:
        return "it is not ready yet"
    for condition in _HINDERING_CONDITIONS:
        if node.conditions.get(condition) == "True":
            return f"its condition {condition} is True"
    taint = next(filter(passing.is_startup, node.taints), None)
    if taint is not None:
        return f"it has the start-up taint {taint.key}"
    lacking = lacking_resources(node, expected)
    if lacking:
        return f"{', '.join(lacking)} of the node cannot be allocated yet"
    return ""
