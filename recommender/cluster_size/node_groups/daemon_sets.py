"""Pods of DaemonSets: which of them a new node would have from the start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.cluster.predicates.filters import PodFilter
from adapter.cluster.predicates.snapshot import Snapshot
from adapter.cluster.scheduling.constraints import TaintEffect, Toleration

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from adapter.cluster.scheduling.workloads import WorkloadFacts
    from adapter.cluster.state import ClusterNode, ClusterPod

_KIND: Final = "DaemonSet"
_ADDED_TOLERATIONS: Final = (
    Toleration("node.kubernetes.io/not-ready", "Exists", effect=TaintEffect.NO_EXECUTE),
    Toleration("node.kubernetes.io/unreachable", "Exists", effect=TaintEffect.NO_EXECUTE),
    Toleration("node.kubernetes.io/disk-pressure", "Exists", effect=TaintEffect.NO_SCHEDULE),
    Toleration("node.kubernetes.io/memory-pressure", "Exists", effect=TaintEffect.NO_SCHEDULE),
    Toleration("node.kubernetes.io/pid-pressure", "Exists", effect=TaintEffect.NO_SCHEDULE),
    Toleration("node.kubernetes.io/unschedulable", "Exists", effect=TaintEffect.NO_SCHEDULE),
    Toleration("node.kubernetes.io/network-unavailable", "Exists", effect=TaintEffect.NO_SCHEDULE),
)
"""What the DaemonSet controller adds to each pod (`pkg/controller/daemon/util`, `AddOrUpdateDaemonPodTolerations`)."""


def comes_with_the_node(pod: ClusterPod, daemon_sets: Collection[tuple[str, str]] = ()) -> bool:
    """Whether a new node of the same kind has such a pod: one of a DaemonSet, or of the kubelet's own files.

    `daemon_sets` are namespaces and names; if there are none, each one that a pod names is taken to exist. Annotations
    and owners of other API groups prove nothing: whoever may make pods could make new nodes seem full with them.
    """
    owner = pod.controller
    if owner is None or pod.has_ended:
        return False
    if owner.kind == _KIND and owner.api_version.partition("/")[0] == "apps":
        return not daemon_sets or (pod.namespace, owner.name) in daemon_sets
    return (owner.api_version, owner.kind, owner.name) == ("v1", "Node", pod.node)


def daemon_pods(workloads: Iterable[WorkloadFacts]) -> tuple[ClusterPod, ...]:
    """Return a pod of each DaemonSet, as its controller makes it, in the order in which they get their places.

    Pods of a higher priority come first, as the scheduler takes them.
    """
    return tuple(sorted(_made(workloads), key=lambda pod: (-pod.priority, pod.namespace, pod.name)))


def _made(workloads: Iterable[WorkloadFacts]) -> Iterator[ClusterPod]:
    for workload in workloads:
        pod = workload.template
        if workload.kind != _KIND or pod is None or pod.facts is None:
            continue
        scheduling = pod.facts.scheduling
        tolerant = replace(scheduling, tolerations=(*scheduling.tolerations, *_ADDED_TOLERATIONS))
        yield replace(pod, name=f"{workload.name}-template", facts=replace(pod.facts, scheduling=tolerant))


def pods_on(node: ClusterNode, daemons: Iterable[ClusterPod]) -> tuple[ClusterPod, ...]:
    """Return the pods of DaemonSets that run on a new, otherwise empty node.

    A pod that the node's labels, taints or size keep away is not among them, since it takes no room there.
    """
    snapshot = Snapshot((node,), ())
    info = snapshot.nodes[node.name]
    running = []
    for pod in daemons:
        if PodFilter(snapshot, snapshot.shape(pod)).fits(info):
            snapshot.place(pod, node.name)
            running.append(pod)
    return tuple(running)
