"""All what-if questions of one command, applied to a cluster one after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.documents.tree import nearest
from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.future.workload_pods import workload_key
from recommender.kinds.cluster_size.node_groups.daemon_sets import comes_with_the_node
from recommender.kinds.cluster_size.what_if.model import MOST_REPLICAS, Assumed, WhatIfError
from recommender.kinds.cluster_size.what_if.workloads import assumed_workload, new_pods, with_assumption

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.state import ClusterPod, ClusterState
    from recommender.kinds.cluster_size.future.workload_pods import WorkloadKey
    from recommender.kinds.cluster_size.what_if.model import WhatIf


def assumed(cluster: ClusterState, question: WhatIf) -> Assumed:
    """Return the cluster under the assumptions, and the pods that do not exist. Raises WhatIfError."""
    pods: list[ClusterPod] = []
    notes: list[str] = []
    seen: set[WorkloadKey] = set()
    for assumption in question.assumptions:
        key = workload_key(assumed_workload(cluster, assumption))
        if key in seen:
            raise WhatIfError(
                f"--assume {assumption}: the number of pods of this workload is given twice: give it once"
            )
        seen.add(key)
        result = with_assumption(cluster, assumption)
        cluster = result.cluster
        pods += result.pods
        notes += result.notes
    if question.pods or question.workloads:
        added = _added_pods(cluster, question, pods)
        pods += added
        notes.append(f"{count_of(len(added), 'pod')} of --add-pods")
    displaced: dict[tuple[str, str], str] = {}
    for name in dict.fromkeys(question.without_nodes):
        if isinstance(cluster.pods, Observed):
            displaced |= {(pod.namespace, pod.name): name for pod in cluster.pods.value if pod.node == name}
        cluster = _without_node(cluster, name)
        notes.append(f"node {name} is removed, and its pods need another node")
    return Assumed(cluster, tuple(pods), displaced, tuple(notes))


def _without_node(cluster: ClusterState, name: str) -> ClusterState:
    if isinstance(cluster.nodes, Unknown):
        raise WhatIfError(f"--without-node {name}: nodes are not known: {cluster.nodes.reason}")
    names = [node.name for node in cluster.nodes.value]
    if name not in names:
        meant = nearest(name, names)
        fix = f"did you mean {meant}?" if meant else "write the name of a node of this cluster"
        raise WhatIfError(f"--without-node {name}: there is no such node: {fix}")
    nodes = tuple(node for node in cluster.nodes.value if node.name != name)
    pods = cluster.pods
    if isinstance(pods, Observed):
        left = (pod if pod.node != name else _unbound(pod) for pod in pods.value if pod.node != name or _moves(pod))
        pods = Observed(tuple(left), pods.time)
    return replace(cluster, nodes=Observed(nodes, cluster.nodes.time), pods=pods)


def _moves(pod: ClusterPod) -> bool:
    """Return whether a pod of a removed node needs another node: not if it ends anyway, or comes with its node."""
    if pod.has_ended or pod.is_terminating:
        return False
    return not comes_with_the_node(pod)


def _unbound(pod: ClusterPod) -> ClusterPod:
    return replace(pod, node="", phase="Pending", bound_at=None, ended_at=None, is_terminating=False)


def _added_pods(cluster: ClusterState, question: WhatIf, others: Iterable[ClusterPod]) -> list[ClusterPod]:
    """Return the pods of `--add-pods`, unbound and with unused names."""
    existing = cluster.pods.value if isinstance(cluster.pods, Observed) else ()
    taken = {(pod.namespace, pod.name) for pod in (*existing, *others)}
    found: list[ClusterPod] = []
    for pod in question.pods:
        name, number = pod.name, 0
        while (pod.namespace, name) in taken:
            name, number = f"{pod.name}-new-{number}", number + 1
        taken.add((pod.namespace, name))
        found.append(replace(_unbound(pod), name=name, uid=f"new/{pod.namespace}/{name}"))
    for workload in question.workloads:
        if workload.replicas is None:
            raise WhatIfError(
                f"--add-pods: {workload.kind} {workload.namespace}/{workload.name} has no number of replicas: "
                "write a Deployment, StatefulSet, ReplicaSet or Job"
            )
        if len(found) + workload.replicas > MOST_REPLICAS:
            raise WhatIfError(
                f"--add-pods: with {workload.kind} {workload.namespace}/{workload.name} there are more than "
                f"{MOST_REPLICAS} pods: lower its replicas"
            )
        found += new_pods(workload, workload.replicas, "added")
    return found
