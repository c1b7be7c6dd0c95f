"""Objects of Cluster API as its controllers write them, in both API versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from adapter.foundation.cluster.values.state import ClusterState, Observed
from recommender.kinds.cluster_size.model.size_settings import ClusterApiGroups
from recommender.kinds.cluster_size.node_groups import watched_kinds as kinds

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod, ObjectKind, Unknown
    from adapter.foundation.cluster.values.workloads import WorkloadFacts

Json: TypeAlias = dict[str, Any]

ALL: Final = ClusterApiGroups(("capi",))
MIN: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
MAX: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
BOUNDS: Final = {MIN: "1", MAX: "10"}
CAPACITY: Final = "capacity.cluster-autoscaler.kubernetes.io/"
OPTIONS: Final = "cluster.x-k8s.io/autoscaling-options-"
NO_WORKLOADS: Final[Observed[tuple[WorkloadFacts, ...]]] = Observed((), 0.0)
VERSIONS: Final = ("v1beta1", "v1beta2")


def owner(kind: str, name: str) -> list[Json]:
    return [
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    ]


def scalable(
    name: str = "workers",
    replicas: int | None = 2,
    *,
    kind: str = "MachineDeployment",
    version: str = "v1beta2",
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    owned_by: list[Json] | None = None,
    cluster: str = "prod",
    spec: Json | None = None,
    template: Json | None = None,
    status: Json | None = None,
) -> Json:
    infrastructure: Json = {"kind": "DockerMachineTemplate", "name": f"{name}-infra"}
    group = "infrastructure.cluster.x-k8s.io"
    if version == "v1beta1":
        infrastructure |= {"apiVersion": f"{group}/v1beta1", "namespace": "capi"}
    else:
        infrastructure |= {"apiGroup": group}
    machine: Json = {
        "metadata": {"labels": {"cluster.x-k8s.io/cluster-name": cluster}},
        "spec": {"clusterName": cluster, "version": "v1.34.1", "infrastructureRef": infrastructure},
    }
    for part, values in (template or {}).items():
        machine[part] = {**machine[part], **values}
    return {
        "apiVersion": f"cluster.x-k8s.io/{version}",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "capi",
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "annotations": BOUNDS if annotations is None else annotations,
            "labels": labels or {},
            "ownerReferences": owned_by or [],
        },
        "spec": {"clusterName": cluster, "template": machine}
        | ({} if replicas is None else {"replicas": replicas})
        | (spec or {}),
        "status": {"replicas": replicas or 0} | (status or {}),
    }


def machine(
    name: str,
    node: str = "",
    *,
    owned_by: list[Json],
    provider_id: str = "",
    version: str = "v1beta2",
    annotations: dict[str, str] | None = None,
    deleted: bool = False,
) -> Json:
    reference: Json = {"name": node}
    if version == "v1beta1":
        reference |= {"apiVersion": "v1", "kind": "Node", "uid": f"uid-{node}"}
    metadata: Json = {
        "name": name,
        "namespace": "capi",
        "annotations": annotations or {},
        "ownerReferences": owned_by,
    }
    if deleted:
        metadata["deletionTimestamp"] = "2026-11-22T12:00:00Z"
    return {
        "apiVersion": f"cluster.x-k8s.io/{version}",
        "kind": "Machine",
        "metadata": metadata,
        "spec": {"clusterName": "prod"} | ({"providerID": provider_id} if provider_id else {}),
        "status": {"phase": "Running"} | ({"nodeRef": reference} if node else {}),
    }


def machines_of(name: str, *nodes: str, version: str = "v1beta2") -> tuple[Json, list[Json]]:
    """Return the MachineSet of a MachineDeployment and its Machines, one for each node."""
    set_name = f"{name}-x7f2k"
    owned = scalable(
        set_name, len(nodes), kind="MachineSet", owned_by=owner("MachineDeployment", name), version=version
    )
    return owned, [
        machine(f"{set_name}-{node}", node, owned_by=owner("MachineSet", set_name), version=version) for node in nodes
    ]


def cluster(name: str = "prod", **spec: object) -> Json:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": "capi"},
        "spec": spec,
    }


def state(
    *objects: Json,
    nodes: tuple[ClusterNode, ...] = (),
    pods: tuple[ClusterPod, ...] = (),
    more: dict[ObjectKind, Any] | None = None,
    workloads: Observed[tuple[WorkloadFacts, ...]] | Unknown = NO_WORKLOADS,
) -> ClusterState:
    """Return the state of a cluster that has these objects of Cluster API."""
    found: dict[ObjectKind, Any] = {
        kind: Observed(tuple(one for one in objects if one["kind"] == kind.kind), 0.0)
        for kind in (
            *(each for name in kinds.SCALABLE_RESOURCES for each in kinds.scalable_kinds(name, ALL)),
            *kinds.machines(ALL),
            *kinds.clusters(ALL),
            kinds.infrastructure("infrastructure.cluster.x-k8s.io", "DockerMachineTemplate", "capi"),
            kinds.STATUS_CONFIG_MAP,
        )
    }
    return ClusterState(
        nodes=Observed(nodes, 0.0),
        pods=Observed(pods, 0.0),
        objects=found | (more or {}),
        workloads=workloads,
    )
