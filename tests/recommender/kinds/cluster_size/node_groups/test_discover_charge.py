"""The other autoscaler that manages node groups, as far as the cluster shows it."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.foundation.cluster.values.state import ClusterState, ObjectKind, Observed, Unknown
from adapter.foundation.cluster.values.workloads import WorkloadFacts
from recommender.kinds.cluster_size.model.size_settings import LabelGroups, NodeGroupSources
from recommender.kinds.cluster_size.node_groups.discover import node_groups
from recommender.kinds.cluster_size.node_groups.watched_kinds import STATUS_CONFIG_MAP, leases
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import ALL, Json, machines_of, scalable, state
from tests.recommender.kinds.cluster_size.node_groups.discovery_harness import POOL_A, static


def status(text: str, updated: str = "") -> Json:
    return {
        "kind": "ConfigMap",
        "metadata": {
            "namespace": "kube-system",
            "name": "cluster-autoscaler-status",
            "annotations": {"cluster-autoscaler.kubernetes.io/last-updated": updated} if updated else {},
        },
        "data": {"status": text},
    }


NOW = 1_795_363_200.0  # 2026-11-22T16:00:00Z
YAML_STATUS = "time: 2026-11-22\nautoscalerStatus: Running\nnodeGroups:\n- name: {}\n  health:\n    status: Healthy\n"
OLD_STATUS = "Cluster-autoscaler status at 2026\nNodeGroups:\n  Name:        {}\n  Health:      Healthy\n"
WORKERS = "MachineDeployment/capi/workers"


@pytest.mark.parametrize(
    ("config_map", "is_in_charge"),
    [
        (status(""), True),
        (status(YAML_STATUS.format(WORKERS)), True),
        (status(OLD_STATUS.format(WORKERS)), True),
        (status(YAML_STATUS.format("eks-workers-0a1b")), False),
        (status("", "2026-11-22 15:59:50.123456789 +0000 UTC"), True),
        (status("", "2026-11-22 15:30:00.123456789 +0000 UTC"), False),
        (status("", "2026-11-22 16:59:50 +0100 CET"), True),
        (status("", "yesterday"), True),
    ],
)
def test_the_status_of_cluster_autoscaler_shows_which_groups_it_manages(
    config_map: Json, *, is_in_charge: bool
) -> None:
    owned, machines = machines_of("workers", "n1")
    harness = state(scalable(), owned, *machines, config_map, nodes=(node("n1"),))
    (group,) = node_groups(NodeGroupSources(cluster_api=ALL), harness, NOW).groups
    assert group.autoscaler.startswith("Cluster Autoscaler (ConfigMap kube-system/") == is_in_charge


IMAGE = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.1"


def deployment(name: str, namespace: str = "kube-system", image: str = IMAGE, replicas: int = 1) -> WorkloadFacts:
    labels = {"app.kubernetes.io/name": "clusterapi-cluster-autoscaler", "app": "cluster-autoscaler"}
    return WorkloadFacts(
        "Deployment", namespace, name, "uid", replicas, pod("", labels=labels), images=("log:1", image)
    )


def in_charge(harness: ClusterState, namespaces: tuple[str, ...] = ("kube-system", "ops")) -> str:
    sources = NodeGroupSources(cluster_api=ALL, autoscaler_namespaces=namespaces)
    (group,) = node_groups(sources, harness, NOW).groups
    return group.autoscaler


@pytest.mark.parametrize(
    ("workload", "name"),
    [
        (deployment("capi"), "Cluster Autoscaler (Deployment kube-system/capi)"),
        (deployment("ca", "ops"), "Cluster Autoscaler (Deployment ops/ca)"),
        (deployment("ca", image="cluster-autoscaler-arm64"), "Cluster Autoscaler (Deployment kube-system/ca)"),
        (
            deployment("ca", image="r:5000/cluster-autoscaler@sha256:ab"),
            "Cluster Autoscaler (Deployment kube-system/ca)",
        ),
        (deployment("cluster-autoscaler", replicas=0), ""),
        # Attacks: a tenant who may create a Deployment chooses its name, labels and image, but not its namespace.
        (deployment("cluster-autoscaler", "evil"), ""),
        (deployment("my-cluster-autoscaler-x", "evil", "nginx:1"), ""),
        (deployment("cluster-autoscaler", image="nginx:1"), ""),
        (deployment("web", image="evil/not-a-cluster-autoscaler:1"), ""),
        (deployment("web", image="cluster-autoscaler/nginx:1"), ""),
    ],
)
def test_a_workload_with_its_image_in_a_listed_namespace_shows_that_cluster_autoscaler_runs(
    workload: WorkloadFacts, name: str
) -> None:
    owned, machines = machines_of("workers", "n1")
    assert name == in_charge(
        state(scalable(), owned, *machines, nodes=(node("n1"),), workloads=Observed((workload,), 0.0))
    )


def lease(namespace: str, holder: str = "pod-1", renewed: str = "2026-11-22T15:59:00Z") -> dict[ObjectKind, Any]:
    named = {"namespace": namespace, "name": "cluster-autoscaler"}
    found = {"kind": "Lease", "metadata": named, "spec": {"holderIdentity": holder, "renewTime": renewed}}
    (kind,) = leases([namespace])
    return {kind: Observed((found,), 0.0)}


@pytest.mark.parametrize(
    ("more", "name"),
    [
        (lease("ops"), "Cluster Autoscaler (Lease ops/cluster-autoscaler)"),
        (lease("ops", renewed="soon"), "Cluster Autoscaler (Lease ops/cluster-autoscaler)"),
        (lease("ops", holder=""), ""),
        (lease("ops", renewed="2026-11-22T15:30:00Z"), ""),
        (lease("evil"), ""),
    ],
)
def test_a_lease_in_a_listed_namespace_shows_that_cluster_autoscaler_runs(
    more: dict[ObjectKind, Any], name: str
) -> None:
    assert in_charge(state(scalable(), more=more)) == name


def test_no_size_is_written_if_it_is_unknown_whether_cluster_autoscaler_runs() -> None:
    harness = state(scalable(), more={STATUS_CONFIG_MAP: Unknown("403")})
    (group,) = node_groups(NodeGroupSources(cluster_api=ALL), harness, NOW).groups
    assert group.paused == "it is not known whether a Cluster Autoscaler manages it: 403"


@pytest.mark.parametrize(
    "source", [NodeGroupSources(static=(static(),)), NodeGroupSources(by_label=LabelGroups("pool"))]
)
def test_karpenter_is_recognised_by_its_nodes(source: NodeGroupSources) -> None:
    nodes = (node("n1", labels={**POOL_A, "karpenter.sh/nodepool": "default"}),)
    (group,) = node_groups(source, state(nodes=nodes), 0.0).groups
    assert group.autoscaler == "Karpenter (NodePool default)"
