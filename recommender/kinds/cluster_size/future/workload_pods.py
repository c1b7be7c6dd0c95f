"""Pods that a workload would create: copies of its template, with names of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.values.state import ControllerReference
from recommender.kinds.cluster_size.model.pod_places import deployment_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from adapter.foundation.cluster.values.state import ClusterPod
    from adapter.foundation.cluster.values.workloads import WorkloadFacts

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


def copies(
    workload: WorkloadFacts, count: int, purpose: str, existing: Iterable[ClusterPod] = ()
) -> tuple[ClusterPod, ...]:
    """Return pods that the workload would create; none if it has no template.

    They are named `NAME-PURPOSE-0` and so on, and have the owner of the pods that exist, so that they are equivalent to
    the workload's pods that are pending already.
    """
    template = workload.template
    if template is None:
        return ()
    facts = None if template.facts is None else replace(template.facts, created=None, deleted=None)
    owner = next((pod.controller for pod in existing if pod.controller is not None), None) or template.controller
    return tuple(
        replace(
            template,
            name=f"{workload.name}-{purpose}-{number}",
            uid=f"{purpose}-{workload.uid or workload.name}-{number}",
            controller=owner or _reference(workload),
            node="",
            phase="Pending",
            facts=facts,
        )
        for number in range(count)
    )


def _reference(workload: WorkloadFacts) -> ControllerReference:
    return ControllerReference(
        _API_VERSIONS.get(workload.kind, "apps/v1"), workload.kind, workload.name, workload.uid or workload.name
    )
