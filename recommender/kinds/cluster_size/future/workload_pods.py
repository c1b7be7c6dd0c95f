"""Pods that a workload would create: copies of its template, with names of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.values.state import ControllerReference
from recommender.kinds.cluster_size.model.pod_places import deployment_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from adapter.foundation.cluster.values.workloads import WorkloadFacts
    from adapter.foundation.objects.pod_requests import PodResources

WorkloadKey: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name of a workload."""

_API_VERSIONS: Final = {"Job": "batch/v1", "ReplicationController": "v1"}


def workload_key(workload: WorkloadFacts) -> WorkloadKey:
    """Return kind, namespace and name of a workload."""
    return workload.kind, workload.namespace, workload.name


def pods_by_workload(
    pods: Iterable[ClusterPod], wanted: Collection[WorkloadKey]
) -> dict[WorkloadKey, list[ClusterPod]]:
    """Return the pods of the requested workloads, without those that have ended."""
    found: dict[WorkloadKey, list[ClusterPod]] = {key: [] for key in wanted}
    for pod in pods:
        owner = pod.controller
        if owner is None or pod.has_ended:
            continue
        keys = [(owner.kind, pod.namespace, owner.name)]
        if deployment := deployment_of(pod):
            keys.append(("Deployment", pod.namespace, deployment))
        for key in keys:
            if key in found:
                found[key].append(pod)
    return found


def future_pod(workload: WorkloadFacts, existing: Sequence[ClusterPod]) -> ClusterPod | None:
    """Return a pod as the workload would create it next, without a name of its own; None if it has no template.

    The API server adds to a pod what LimitRanges, its RuntimeClass and webhooks demand, and templates do not show it.
    So the pod has at least the requests and limits of the newest pod with the owner that the template names. Its own
    owner is that of the pods that exist, so that it is equivalent to those of them that are pending.
    """
    template = workload.template
    if template is None:
        return None
    facts = None if template.facts is None else replace(template.facts, created=None, deleted=None)
    owner = next((pod.controller for pod in existing if pod.controller is not None), None) or template.controller
    newest = max((pod for pod in existing if _shows_admission(pod, template)), key=_creation_time, default=None)
    resources = template.resources if newest is None else _larger(template.resources, newest.resources)
    return replace(
        template, controller=owner or _reference(workload), node="", phase="Pending", facts=facts, resources=resources
    )


def copies(pod: ClusterPod, workload: WorkloadFacts, count: int, purpose: str) -> tuple[ClusterPod, ...]:
    """Return copies of a future pod of the workload, named `NAME-PURPOSE-0` and so on."""
    return tuple(
        replace(
            pod,
            name=f"{workload.name}-{purpose}-{number}",
            uid=f"{purpose}-{workload.uid or workload.name}-{number}",
        )
        for number in range(count)
    )


def _shows_admission(pod: ClusterPod, template: ClusterPod) -> bool:
    """Return whether an existing pod is of the template's owner and its requests are known."""
    if pod.controller is None or template.controller is None or pod.facts is None:
        return False
    return pod.controller.uid == template.controller.uid and pod.facts.are_requests_known


def _creation_time(pod: ClusterPod) -> float:
    return 0.0 if pod.facts is None or pod.facts.created is None else pod.facts.created


def _larger(one: PodResources, other: PodResources) -> PodResources:
    """Return the larger amount of each resource; those of the containers are the first's."""
    return replace(
        one,
        requests=_largest(one.requests, other.requests),
        limits=_largest(one.limits, other.limits),
        non_zero_requests=_largest(one.non_zero_requests, other.non_zero_requests),
    )


def _largest(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def _reference(workload: WorkloadFacts) -> ControllerReference:
    return ControllerReference(
        _API_VERSIONS.get(workload.kind, "apps/v1"), workload.kind, workload.name, workload.uid or workload.name
    )
