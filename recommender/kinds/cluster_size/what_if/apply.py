"""All what-if questions of one command, applied to a cluster one after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.documents.tree import did_you_mean, nearest_word
from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.future.workload_pods import copies, future_pod, pods_by_workload, workload_key
from recommender.kinds.cluster_size.model.pod_places import deployment_of, unbound
from recommender.kinds.cluster_size.node_groups.daemon_sets import is_per_node_pod
from recommender.kinds.cluster_size.what_if.model import MOST_REPLICAS, Assumed, WhatIfError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod, ClusterState
    from adapter.foundation.cluster.values.workloads import WorkloadFacts
    from recommender.kinds.cluster_size.future.workload_pods import WorkloadKey
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups
    from recommender.kinds.cluster_size.what_if.model import Assumption, WhatIf

_DAEMON_SET: Final = "DaemonSet"
_PURPOSE: Final = "assumed"


def cluster_under_assumptions(cluster: ClusterState, question: WhatIf) -> Assumed:
    """Return the cluster under the assumptions, and the pods that do not exist. Raises WhatIfError."""
    pods: list[ClusterPod] = []
    notes: list[str] = []
    seen: set[WorkloadKey] = set()
    for assumption in question.assumptions:
        key = workload_key(_assumed_workload(cluster, assumption))
        if key in seen:
            raise WhatIfError(
                f"--assume {assumption}: the number of pods of this workload is given twice: give it once"
            )
        seen.add(key)
        result = _with_assumption(cluster, assumption)
        cluster = result.cluster
        pods += result.pods
        notes += result.notes
    if question.pods or question.workloads:
        added = _added_pods(cluster, question, pods)
        pods += added
        notes.append(f"{count_of(len(added), 'pod')} of --add-pods")
    displaced: dict[tuple[str, str], str] = {}
    before = cluster if question.without_nodes else None
    for name in dict.fromkeys(question.without_nodes):
        if isinstance(cluster.pods, Observed):
            displaced |= {(pod.namespace, pod.name): name for pod in cluster.pods.value if pod.node == name}
        cluster = _without_node(cluster, name)
        notes.append(f"node {name} is removed, and its pods need another node")
    return Assumed(cluster, tuple(pods), displaced, before, tuple(notes))


def _without_node(cluster: ClusterState, name: str) -> ClusterState:
    if isinstance(cluster.nodes, Unknown):
        raise WhatIfError(f"--without-node {name}: nodes are not known: {cluster.nodes.reason}")
    names = [node.name for node in cluster.nodes.value]
    if name not in names:
        fix = did_you_mean(name, names, "write the name of a node of this cluster")
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
    return not is_per_node_pod(pod)


def _unbound(pod: ClusterPod) -> ClusterPod:
    return replace(unbound(pod), phase="Pending", bound_at=None, ended_at=None, is_terminating=False)


def _added_pods(cluster: ClusterState, question: WhatIf, others: Iterable[ClusterPod]) -> list[ClusterPod]:
    """Return the pods of `--add-pods`, unbound and with unused names.

    The output of `kubectl get` for a namespace has Deployments as well as their ReplicaSets and pods: each pod counts
    once.
    """
    existing = cluster.pods.value if isinstance(cluster.pods, Observed) else ()
    taken = {(pod.namespace, pod.name) for pod in (*existing, *others)}
    listed = frozenset(map(workload_key, question.workloads))
    owned = {id(pod) for pods in pods_by_workload(question.pods, listed).values() for pod in pods}
    found: list[ClusterPod] = []
    for pod in (pod for pod in question.pods if id(pod) not in owned):
        name, number = pod.name, 0
        while (pod.namespace, name) in taken:
            name, number = f"{pod.name}-new-{number}", number + 1
        taken.add((pod.namespace, name))
        found.append(replace(_unbound(pod), name=name, uid=f"new/{pod.namespace}/{name}"))
    for workload in question.workloads:
        if workload.kind == "ReplicaSet" and _deployment_key(workload) in listed:
            continue
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
        found += _new_pods(workload, workload.replicas, "added")
    return found


def _deployment_key(replica_set: WorkloadFacts) -> WorkloadKey:
    template = replica_set.template
    return "Deployment", replica_set.namespace, "" if template is None else deployment_of(template)


def _with_assumption(cluster: ClusterState, assumption: Assumption) -> Assumed:
    """Return the cluster in which the workload has this number of pods: new ones are made from its template.

    If there are fewer, pending pods are removed first, then the newest. Raises WhatIfError.
    """
    workload = _assumed_workload(cluster, assumption)
    known = cluster.pods
    if isinstance(known, Unknown):
        raise WhatIfError(f"--assume {assumption}: pods are not known: {known.reason}")
    key = workload_key(workload)
    own = [pod for pod in pods_by_workload(known.value, (key,))[key] if not pod.is_terminating]
    cluster = _with_replicas(cluster, workload, assumption.replicas)
    missing = assumption.replicas - len(own)
    if missing == 0:
        return Assumed(
            cluster, notes=(f"{_workload_name(workload)} has {count_of(assumption.replicas, 'pod')}, as it has now",)
        )
    note = f"{_workload_name(workload)} has {count_of(assumption.replicas, 'pod')} instead of {len(own)}"
    if missing > 0:
        return Assumed(cluster, _new_pods(workload, missing, _PURPOSE, own), notes=(note,))
    gone = {id(pod) for pod in _pods_to_remove(own, -missing)}
    left = tuple(pod for pod in known.value if id(pod) not in gone)
    return Assumed(replace(cluster, pods=Observed(left, known.time)), notes=(note,))


def _new_pods(
    workload: WorkloadFacts, count: int, purpose: str, existing: Sequence[ClusterPod] = ()
) -> tuple[ClusterPod, ...]:
    """Return this number of further pods of a workload, made from its template.

    Raises WhatIfError without a template.
    """
    further = future_pod(workload, existing)
    if further is None:
        raise WhatIfError(f"{_workload_name(workload)} has no template that can be used: {workload.problem}")
    return copies(further, workload, count, purpose)


def _assumed_workload(cluster: ClusterState, assumption: Assumption) -> WorkloadFacts:
    """Return the workload that an assumption is about. Raises WhatIfError."""
    if isinstance(cluster.workloads, Unknown):
        raise WhatIfError(f"--assume {assumption}: workloads are not known: {cluster.workloads.reason}")
    workloads = cluster.workloads.value
    named = [each for each in workloads if (each.namespace, each.name) == (assumption.namespace, assumption.name)]
    found = [each for each in named if assumption.kind.lower() in {"", each.kind.lower()}]
    if not found:
        raise WhatIfError(f"--assume {assumption}: {_not_found(assumption, workloads, named)}")
    if len(found) > 1:
        names = " and ".join(map(_workload_name, found))
        example = f"{found[0].kind}/{assumption.namespace}/{assumption.name}:{assumption.replicas}"
        raise WhatIfError(f"--assume {assumption}: there are {names}: write which one, such as {example}")
    if found[0].kind == _DAEMON_SET:
        raise WhatIfError(
            f"--assume {assumption}: a DaemonSet has one pod per node, so another number cannot be assumed"
        )
    return found[0]


def _not_found(assumption: Assumption, workloads: Iterable[WorkloadFacts], named: Sequence[WorkloadFacts]) -> str:
    text = f"{assumption.namespace}/{assumption.name}"
    if named:
        others = " and ".join(f"{each.kind}/{text}" for each in named)
        return f"there is no {assumption.kind} {text}: did you mean {others}?"
    meant = _similar_workload(assumption, workloads)
    fix = f"did you mean {meant}?" if meant else "write a Deployment, StatefulSet or Job of this cluster"
    return f"there is no workload {text}: {fix}"


def _similar_workload(assumption: Assumption, workloads: Iterable[WorkloadFacts]) -> str | None:
    """Return the `NAMESPACE/NAME` of a workload with a similar name, in any namespace; None if there is none."""
    names = {each.name for each in workloads}
    name = assumption.name if assumption.name in names else nearest_word(assumption.name, names)
    places = {f"{each.namespace}/{each.name}" for each in workloads if each.name == name}
    return next(iter(places)) if len(places) == 1 else nearest_word(f"{assumption.namespace}/{name}", places)


def _workload_name(workload: WorkloadFacts) -> str:
    return f"{workload.kind} {workload.namespace}/{workload.name}"


def _with_replicas(cluster: ClusterState, workload: WorkloadFacts, replicas: int) -> ClusterState:
    assert isinstance(cluster.workloads, Observed), "the workload was found among them"
    workloads = tuple(
        replace(each, replicas=replicas) if each is workload else each for each in cluster.workloads.value
    )
    return replace(cluster, workloads=Observed(workloads, cluster.workloads.time))


def _pods_to_remove(own: list[ClusterPod], count: int) -> list[ClusterPod]:
    """Return the pods to remove: pending ones first, then the newest of those whose times are known."""

    def order(pod: ClusterPod) -> tuple[bool, float, str]:
        created = pod.facts.created if pod.facts is not None else None
        return bool(pod.node), -(created if created is not None else pod.bound_at or 0.0), pod.name

    return sorted(own, key=order)[:count]


def node_names(cluster: ClusterState) -> frozenset[str]:
    """Return the names of the nodes of a cluster; none if they are not known."""
    return frozenset(node.name for node in cluster.nodes.value) if isinstance(cluster.nodes, Observed) else frozenset()


def without_nodes(groups: NodeGroups, removed: Collection[str]) -> NodeGroups:
    """Return the groups, whose sizes no longer count the removed nodes.

    The groups must be those of the cluster with these nodes: without them, a Machine or an instance of a removed node
    would seem to be missing, and a group might have no node to make a template from.
    """
    if not removed:
        return groups
    return replace(
        groups,
        groups=tuple(_smaller_group(group, removed) for group in groups.groups),
        group_of={node: name for node, name in groups.group_of.items() if node not in removed},
    )


def _smaller_group(group: NodeGroup, removed: Collection[str]) -> NodeGroup:
    nodes = tuple(node for node in group.nodes if node not in removed)
    deleting = tuple(node for node in group.deleting if node not in removed)
    gone, left = len(group.nodes) - len(nodes), len(group.deleting) - len(deleting)
    # The size may no longer count nodes that are being deleted.
    uncounted = min(left, max(0, len(group.nodes) - group.target_size))
    return replace(
        group,
        target_size=max(0, group.target_size - gone + uncounted),
        nodes=nodes,
        deleting=deleting,
        joined=max(0, group.joined - gone + left),
    )
