"""Determines which pods of DaemonSets a new node would have from the start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import TaintEffect, Toleration
from adapter.foundation.cluster.values.pod_owners import is_same_object, is_static_pod
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from adapter.foundation.cluster.values.workloads import WorkloadFacts

_KIND: Final = "DaemonSet"
_COMING_KINDS: Final = frozenset({_KIND, "Node"})
"""The kinds of owners whose pods come with a node."""
_ADDED_TOLERATIONS: Final = (
    Toleration("node.kubernetes.io/not-ready", "Exists", effect=TaintEffect.NO_EXECUTE),
    Toleration("node.kubernetes.io/unreachable", "Exists", effect=TaintEffect.NO_EXECUTE),
    Toleration("node.kubernetes.io/disk-pressure", "Exists", effect=TaintEffect.NO_SCHEDULE),
    Toleration("node.kubernetes.io/memory-pressure", "Exists", effect=TaintEffect.NO_SCHEDULE),
    Toleration("node.kubernetes.io/pid-pressure", "Exists", effect=TaintEffect.NO_SCHEDULE),
    Toleration("node.kubernetes.io/unschedulable", "Exists", effect=TaintEffect.NO_SCHEDULE),
    Toleration("node.kubernetes.io/network-unavailable", "Exists", effect=TaintEffect.NO_SCHEDULE),
)
"""Tolerations added by the DaemonSet controller (`pkg/controller/daemon/util`, `AddOrUpdateDaemonPodTolerations`)."""


def is_per_node_pod(
    pod: ClusterPod, daemon_sets: Mapping[tuple[str, str], str] | None = None, node_uid: str = ""
) -> bool:
    """Return whether every node of the kind has such a pod: one of a DaemonSet, or a static pod of the kubelet.

    `daemon_sets` are UIDs by namespace and name; if there are none, every DaemonSet that a pod names is assumed to
    exist. Annotations and owners of other API groups prove nothing: anyone who can create pods could make new nodes
    seem full.
    """
    owner = pod.controller
    # Most pods of a large cluster have another owner, so that is checked first.
    if owner is None or owner.kind not in _COMING_KINDS or pod.has_ended:
        return False
    if owner.is_daemon_set:
        known = (daemon_sets or {}).get((pod.namespace, owner.name))
        return not daemon_sets or (known is not None and is_same_object(owner.uid, known))
    return is_static_pod(pod, node_uid)


def one_of_each(pods: Iterable[ClusterPod]) -> tuple[ClusterPod, ...]:
    """Return one pod of each DaemonSet, as a new node has, and all other pods.

    While a DaemonSet is updated, a node may have two of its pods; the one that is not ending, or the newer one, counts.
    """
    found: dict[tuple[str, str, str], ClusterPod] = {}
    for pod in pods:
        daemon_set = _daemon_set(pod)
        key = pod.namespace, daemon_set, "" if daemon_set else pod.name
        found[key] = max(found.get(key, pod), pod, key=lambda one: (not one.is_terminating, one.bound_at or 0.0))
    return tuple(found.values())


def daemon_pods(workloads: Iterable[WorkloadFacts]) -> tuple[ClusterPod, ...]:
    """Return a pod of each DaemonSet, as its controller creates it, in the order in which they are placed.

    Pods of a higher priority come first, as the scheduler takes them.
    """
    return tuple(sorted(_make_pods(workloads), key=lambda pod: (-pod.priority, pod.namespace, pod.name)))


def _make_pods(workloads: Iterable[WorkloadFacts]) -> Iterator[ClusterPod]:
    for workload in workloads:
        pod = workload.template
        if workload.kind != _KIND or pod is None or pod.facts is None:
            continue
        scheduling = pod.facts.scheduling
        tolerant = replace(scheduling, tolerations=(*scheduling.tolerations, *_ADDED_TOLERATIONS))
        yield replace(pod, name=f"{workload.name}-template", facts=replace(pod.facts, scheduling=tolerant))


def would_run(node: ClusterNode, pods: Iterable[ClusterPod], daemons: Iterable[ClusterPod]) -> tuple[ClusterPod, ...]:
    """Return the pods whose DaemonSets run on a node with these labels and taints, by the rules of their controller.

    `daemons` are a pod of each DaemonSet. Their controller looks at the name of the node, the node selector, the
    required node affinity and the taints (`NodeShouldRunDaemonPod`). Pods without a DaemonSet, such as mirror pods, and
    those whose DaemonSet is not known, are kept.
    """
    snapshot = Snapshot((node,), ())
    info = snapshot.nodes[node.name]
    kept_away = {
        (pod.namespace, pod.controller.name)
        for pod in daemons
        if pod.controller is not None
        and pod.facts is not None
        and snapshot.static_filter(pod.facts.scheduling).refusals(info)
    }
    return tuple(pod for pod in pods if (pod.namespace, _daemon_set(pod)) not in kept_away)


def _daemon_set(pod: ClusterPod) -> str:
    owner = pod.controller
    return owner.name if owner is not None and owner.is_daemon_set else ""


def pods_on(node: ClusterNode, daemons: Iterable[ClusterPod]) -> tuple[ClusterPod, ...]:
    """Return the pods of DaemonSets that run on a new, otherwise empty node.

    A pod that the node's labels, taints or size exclude is not among them, since it uses no resources there.
    """
    snapshot = Snapshot((node,), ())
    info = snapshot.nodes[node.name]
    running = []
    for pod in daemons:
        if PodFilter(snapshot, snapshot.shape(pod)).fits(info):
            snapshot.place(pod, node.name)
            running.append(pod)
    return tuple(running)


def stays_with_node(pod: ClusterPod) -> bool:
    """Return whether a pod is of a DaemonSet, or says that its owner is a node, as the kubelet's own pods do."""
    return is_per_node_pod(pod) or (pod.controller is not None and pod.controller.kind == "Node")
