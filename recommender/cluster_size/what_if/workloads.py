"""Workloads with more or fewer pods than they have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.cluster.state import ControllerReference, Observed, Unknown
from adapter.documents.tree import nearest
from recommender.cluster_size.what_if.model import Assumed, WhatIfError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.cluster.scheduling.workloads import Workload
    from adapter.cluster.state import ClusterPod, ClusterState
    from recommender.cluster_size.what_if.model import Assumption

_DAEMON_SET: Final = "DaemonSet"
_DEPLOYMENT: Final = "Deployment"
_STATEFUL_SET: Final = "StatefulSet"
_REPLICA_SET: Final = "ReplicaSet"
_HASH_LABEL: Final = "pod-template-hash"
_API_VERSIONS: Final = {"Job": "batch/v1", "ReplicationController": "v1"}


def with_assumption(cluster: ClusterState, assumption: Assumption) -> Assumed:
    """Return the cluster in which the workload has so many pods: new ones as its template makes them, or fewer.

    Fewer: pending pods go first, then the newest. Raises WhatIfError.
    """
    workload = _found(cluster, assumption)
    bound = cluster.pods
    if isinstance(bound, Unknown):
        raise WhatIfError(f"{assumption}: pods are not known: {bound.reason}")
    own = [pod for pod in bound.value if not pod.has_ended and not pod.is_terminating and is_pod_of(workload, pod)]
    what = f"{workload.kind} {workload.namespace}/{workload.name}"
    cluster = _with_replicas(cluster, workload, assumption.replicas)
    missing = assumption.replicas - len(own)
    if missing > 0:
        pods = new_pods(workload, missing, own, bound.value)
        return Assumed(cluster, pods, (f"{what} has {assumption.replicas} pods instead of {len(own)}",))
    gone = {pod.uid or f"{pod.namespace}/{pod.name}" for pod in _going(own, -missing)}
    left = tuple(pod for pod in bound.value if (pod.uid or f"{pod.namespace}/{pod.name}") not in gone)
    notes = (f"{what} has {assumption.replicas} pods instead of {len(own)}",) if missing else ()
    return Assumed(replace(cluster, pods=Observed(left, bound.time)), (), notes)


def new_pods(
    workload: Workload, count: int, own: Iterable[ClusterPod], taken: Iterable[ClusterPod]
) -> tuple[ClusterPod, ...]:
    """Return so many further pods of a workload, with its owner and with names that nobody has. Raises WhatIfError."""
    template = workload.template
    if template is None:
        raise WhatIfError(
            f"{workload.kind} {workload.namespace}/{workload.name} has no usable template: {workload.problem}"
        )
    example = next((pod for pod in own if pod.controller is not None), None)
    controller = _controller(workload) if example is None else example.controller
    labels = dict(template.labels)
    if example is not None and _HASH_LABEL in example.labels:
        labels[_HASH_LABEL] = example.labels[_HASH_LABEL]
    names = {pod.name for pod in taken if pod.namespace == workload.namespace}
    pods: list[ClusterPod] = []
    number = 0
    while len(pods) < count:
        name = f"{workload.name}-{number}" if workload.kind == _STATEFUL_SET else f"{workload.name}-new-{number}"
        number += 1
        if name in names:
            continue
        pods.append(
            replace(
                template,
                namespace=workload.namespace,
                name=name,
                uid=f"new/{workload.namespace}/{name}",
                node="",
                labels=labels,
                controller=controller,
                phase="Pending",
            )
        )
    return tuple(pods)


def is_pod_of(workload: Workload, pod: ClusterPod) -> bool:
    """Whether a workload made the pod; a Deployment does so through its ReplicaSets, which are named after it."""
    controller = pod.controller
    if controller is None or pod.namespace != workload.namespace:
        return False
    if workload.kind != _DEPLOYMENT:
        same = controller.uid == workload.uid if workload.uid else controller.name == workload.name
        return controller.kind == workload.kind and same
    prefix, _, suffix = controller.name.rpartition("-")
    is_own = controller.kind == _REPLICA_SET and prefix == workload.name
    return is_own and pod.labels.get(_HASH_LABEL, suffix) == suffix


def _found(cluster: ClusterState, assumption: Assumption) -> Workload:
    if isinstance(cluster.workloads, Unknown):
        raise WhatIfError(f"{assumption}: workloads are not known: {cluster.workloads.reason}")
    workloads = cluster.workloads.value
    place = (assumption.namespace, assumption.name)
    found = [each for each in workloads if (each.namespace, each.name) == place]
    if assumption.kind:
        found = [each for each in found if each.kind.lower() == assumption.kind.lower()]
    if not found:
        text = f"{assumption.namespace}/{assumption.name}"
        meant = nearest(text, {f"{each.namespace}/{each.name}" for each in workloads})
        fix = f"did you mean {meant}?" if meant else "write a Deployment, StatefulSet or Job of this cluster"
        raise WhatIfError(f"{assumption}: there is no workload {text}: {fix}")
    if len(found) > 1:
        names = " and ".join(f"{each.kind} {each.namespace}/{each.name}" for each in found)
        example = f"{found[0].kind}/{assumption.namespace}/{assumption.name}:{assumption.replicas}"
        raise WhatIfError(f"{assumption}: there are {names}: write which one, such as {example}")
    if found[0].kind == _DAEMON_SET:
        raise WhatIfError(f"{assumption}: a DaemonSet has a pod on each node, so its number cannot be assumed")
    return found[0]


def _with_replicas(cluster: ClusterState, workload: Workload, replicas: int) -> ClusterState:
    assert isinstance(cluster.workloads, Observed), "the workload was found among them"
    workloads = tuple(
        replace(each, replicas=replicas) if each is workload else each for each in cluster.workloads.value
    )
    return replace(cluster, workloads=Observed(workloads, cluster.workloads.time))


def _going(own: list[ClusterPod], count: int) -> list[ClusterPod]:
    """Return the pods that go: pending ones first, then the newest, of which the times are known."""

    def order(pod: ClusterPod) -> tuple[bool, float, str]:
        created = pod.facts.created if pod.facts is not None else None
        return bool(pod.node), -(created if created is not None else pod.bound_at or 0.0), pod.name

    return sorted(own, key=order)[:count]


def _controller(workload: Workload) -> ControllerReference:
    """Return the owner of the pods of a workload that has none yet."""
    kind = _REPLICA_SET if workload.kind == _DEPLOYMENT else workload.kind
    api_version = _API_VERSIONS.get(workload.kind, "apps/v1")
    return ControllerReference(api_version, kind, workload.name, workload.uid or f"new/{workload.name}")
