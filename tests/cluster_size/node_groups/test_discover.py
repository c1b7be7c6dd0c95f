from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.cluster.scheduling.constraints import PodScheduling, Toleration
from adapter.cluster.scheduling.workloads import WorkloadFacts
from adapter.cluster.state import ClusterPod, Observed, Unknown
from adapter.objects.selectors import parse_selector
from recommender.cluster_size.model.groups import GroupOptions, NodeGroup
from recommender.cluster_size.model.settings import (
    ClusterApiGroups,
    LabelGroups,
    NodeGroupSources,
    StaticGroup,
)
from recommender.cluster_size.node_groups.discover import node_groups
from recommender.cluster_size.node_groups.kinds import STATUS_CONFIG_MAP
from tests.cluster_size.builders import controller, node, pod
from tests.cluster_size.node_groups.cluster_api_objects import Json, machines_of, scalable, state

GIB = 1 << 30
POOL_A = {"pool": "a"}


def static(name: str = "a", selector: str = "pool=a", **more: object) -> StaticGroup:
    return replace(StaticGroup(name, 0, 20, parse_selector(selector)), **more)  # type: ignore[arg-type]


def daemon_set(
    name: str, cpu: str = "100m", *, priority: int = 0, scheduling: PodScheduling | None = None
) -> WorkloadFacts:
    made = pod(
        "", cpu, controller=controller(name, "DaemonSet"), priority=priority, scheduling=scheduling or PodScheduling()
    )
    return WorkloadFacts("DaemonSet", "default", name, f"uid-{name}", None, made)


def group_of(
    stated: StaticGroup, *workloads: WorkloadFacts, pods: tuple[ClusterPod, ...] = (), **facts: object
) -> NodeGroup:
    world = state(pods=pods, workloads=Observed(workloads, 0.0), **facts)  # type: ignore[arg-type]
    (group,) = node_groups(NodeGroupSources(static=(stated,)), world, 1000.0).groups
    return group


def test_a_static_group_is_what_the_configuration_states() -> None:
    stated = static(
        selector="pool=a,disk in (ssd)",
        price=0.19,
        capacity={"cpu": 4000, "memory": 16 * GIB, "nvidia.com/gpu": 1},
        labels={"size": "large"},
        taints=(("gpu", "", "NoSchedule"),),
        options=GroupOptions(unneeded_seconds=60.0),
    )
    group = group_of(stated, nodes=(node("n1", labels={"pool": "a", "disk": "ssd"}), node("n2", labels=POOL_A)))
    assert (group.nodes, group.target_size, group.price) == (("n1",), 1, 0.19)
    assert group.options.unneeded_seconds == 60.0
    assert group.template is not None
    made = group.template.node
    assert {"pool": "a", "disk": "ssd", "size": "large", "kubernetes.io/os": "linux"}.items() <= made.labels.items()
    assert "kubernetes.io/hostname" not in made.labels
    assert {key: str(value) for key, value in made.allocatable.items()} == {
        "cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1", "pods": "110",
    }  # fmt: skip
    assert (made.name, group.template.source) == ("template/a", "configuration")


def test_without_a_template_a_ready_node_shows_what_a_new_one_holds() -> None:
    nodes = (
        node("old", "2", labels=POOL_A, created=10.0),
        node(
            "new",
            "8",
            labels=POOL_A,
            created=500.0,
            taints=("node.kubernetes.io/disk-pressure:NoSchedule", "t=1:NoExecute"),
        ),
        node("newer", "8", labels=POOL_A, created=600.0, taints=("t=1:NoExecute",)),
        node("too-new", "8", labels=POOL_A, created=990.0),
        node("cordoned", "8", labels=POOL_A, created=700.0, unschedulable=True),
        node("broken", "8", labels=POOL_A, created=800.0, conditions={"Ready": "Unknown"}),
    )
    daemon = pod("d1", node="newer", controller=controller("d", "DaemonSet"))
    mirror = pod(
        "m1",
        node="newer",
        annotations={"kubernetes.io/config.mirror": "x"},
        controller=controller("newer", "Node", "v1"),
    )
    others = (pod("w1", node="newer", controller="web"), pod("d2", node="old", controller=controller("d", "DaemonSet")))
    group = group_of(static(), daemon_set("d"), daemon_set("other"), nodes=nodes, pods=(daemon, mirror, *others))
    assert group.template is not None
    assert group.template.source == "node newer"
    assert [one.name for one in group.template.pods] == ["d1", "m1"]
    assert all(not one.node for one in group.template.pods)
    made = group.template.node
    assert made.labels == POOL_A
    assert [taint.key for taint in made.taints] == ["t"]
    assert (made.ready, made.unschedulable, made.provider_id) == (True, False, "")
    assert group.target_size == 6


@pytest.mark.parametrize(
    "taint",
    [
        "node.kubernetes.io/disk-pressure",
        "ToBeDeletedByClusterAutoscaler",
        "node.cloudprovider.kubernetes.io/uninitialized",
    ],
)
def test_a_passing_state_of_the_example_is_not_that_of_new_nodes(taint: str) -> None:
    group = group_of(static(), nodes=(node("n1", labels=POOL_A, taints=(f"{taint}:NoSchedule", "kept:NoSchedule")),))
    assert group.template is not None
    assert [one.key for one in group.template.node.taints] == ["kept"]


@pytest.mark.parametrize(
    ("scheduling", "runs"),
    [
        (PodScheduling(), False),
        (PodScheduling(tolerations=(Toleration("gpu", "Exists"),)), True),
        (PodScheduling(tolerations=(Toleration(operator="Exists"),)), True),
        (PodScheduling(node_selector=(("pool", "b"),), tolerations=(Toleration(operator="Exists"),)), False),
        (PodScheduling(node_selector=(("pool", "a"),), tolerations=(Toleration(operator="Exists"),)), True),
    ],
)
def test_daemon_sets_run_on_a_template_that_they_select_and_tolerate(scheduling: PodScheduling, *, runs: bool) -> None:
    stated = static(capacity={"cpu": 4000, "memory": GIB}, taints=(("gpu", "", "NoSchedule"),))
    group = group_of(stated, daemon_set("d", scheduling=scheduling))
    assert group.template is not None
    assert len(group.template.pods) == runs


def test_a_daemon_set_that_has_no_room_on_a_template_takes_none() -> None:
    stated = static(capacity={"cpu": 1000, "memory": GIB})
    group = group_of(stated, daemon_set("a", "600m"), daemon_set("b", "600m", priority=9), daemon_set("c", "300m"))
    assert group.template is not None
    assert [one.name for one in group.template.pods] == ["b-template", "c-template"]


def test_a_group_without_node_and_template_is_named_and_left_out() -> None:
    assert group_of(static()).problem == (
        "it has no ready node and no template, so nobody knows what a new node would hold: "
        "write template.cpu and template.memory"
    )


def test_a_template_that_its_own_selector_does_not_match_is_a_named_problem() -> None:
    stated = static(selector="pool", capacity={"cpu": 1000, "memory": GIB})
    (problem,) = node_groups(NodeGroupSources(static=(stated,)), state(), 0.0).problems
    assert problem.startswith("node group a: its template does not have the labels")


def test_each_value_of_a_label_is_a_group() -> None:
    nodes = (
        node("n1", labels={"pool": "x"}),
        node("n2", labels={"pool": "y"}),
        node("n3", labels={"pool": "x"}),
        node("n4"),
    )
    groups = node_groups(NodeGroupSources(by_label=LabelGroups("pool", 1, 9, {"x": 0.5})), state(nodes=nodes), 0.0)
    assert [(one.name, one.nodes, one.min_size, one.max_size, one.price) for one in groups.groups] == [
        ("x", ("n1", "n3"), 1, 9, 0.5),
        ("y", ("n2",), 1, 9, None),
    ]
    assert {one.autoscaler for one in groups.groups} == {"the autoscaler of the cloud (byLabel)"}
    assert "n4" not in groups.group_of


def test_a_node_of_two_groups_belongs_to_the_first_and_the_other_group_is_left_out() -> None:
    sources = NodeGroupSources(static=(static(), static("b", "")), by_label=LabelGroups("pool"))
    groups = node_groups(sources, state(nodes=(node("n1", labels={"pool": "a"}), node("n2"))), 0.0)
    assert groups.group_of == {"n1": "a", "n2": "b"}
    assert [bool(one.problem) for one in groups.groups] == [False, True]
    assert groups.problems == (
        "node group b: node n1 already belongs to a: each node may belong to one group alone",
        "two node groups are named a: the second one is left out: rename one of them",
    )


@pytest.mark.parametrize("missing", ["nodes", "pods"])
def test_without_nodes_or_pods_there_are_no_groups(missing: str) -> None:
    world = replace(state(nodes=(node("n1", labels=POOL_A),)), **{missing: Unknown("403")})  # type: ignore[arg-type]
    groups = node_groups(NodeGroupSources(static=(static(),)), world, 0.0)
    assert (groups.groups, groups.problems) == ((), ("node groups are not known: 403",))


def test_without_workloads_what_is_missing_from_templates_is_stated() -> None:
    world = state(workloads=Unknown("403"))
    groups = node_groups(NodeGroupSources(static=(static(capacity={"cpu": 1000, "memory": GIB}),)), world, 0.0)
    assert groups.problems[0].startswith("DaemonSets are not known")
    assert groups.problems[0].endswith("403")


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
def test_the_status_of_cluster_autoscaler_shows_what_it_is_in_charge_of(
    config_map: Json, *, is_in_charge: bool
) -> None:
    owned, machines = machines_of("workers", "n1")
    world = state(scalable(), owned, *machines, config_map, nodes=(node("n1"),))
    (group,) = node_groups(NodeGroupSources(cluster_api=ClusterApiGroups()), world, NOW).groups
    assert group.autoscaler.startswith("Cluster Autoscaler (ConfigMap kube-system/") == is_in_charge


def deployment(name: str, replicas: int = 1, labels: dict[str, str] | None = None) -> WorkloadFacts:
    return WorkloadFacts("Deployment", "ops", name, "uid", replicas, pod("", labels=labels))


@pytest.mark.parametrize(
    ("workload", "name"),
    [
        (deployment("capi-cluster-autoscaler"), "Cluster Autoscaler (Deployment ops/capi-cluster-autoscaler)"),
        (
            deployment("ca", labels={"app.kubernetes.io/name": "clusterapi-cluster-autoscaler"}),
            "Cluster Autoscaler (Deployment ops/ca)",
        ),
        (deployment("cluster-autoscaler", 0), ""),
        (deployment("web", labels={"app": "web"}), ""),
    ],
)
def test_a_deployment_shows_that_cluster_autoscaler_runs(workload: WorkloadFacts, name: str) -> None:
    owned, machines = machines_of("workers", "n1")
    world = state(scalable(), owned, *machines, nodes=(node("n1"),), workloads=Observed((workload,), 0.0))
    (group,) = node_groups(NodeGroupSources(cluster_api=ClusterApiGroups()), world, NOW).groups
    assert group.autoscaler == name


def test_if_nobody_knows_whether_cluster_autoscaler_runs_no_size_may_be_written() -> None:
    world = state(scalable(), more={STATUS_CONFIG_MAP: Unknown("403")})
    (group,) = node_groups(NodeGroupSources(cluster_api=ClusterApiGroups()), world, NOW).groups
    assert group.paused == "whether a Cluster Autoscaler has it in its charge is not known: 403"


@pytest.mark.parametrize(
    "source", [NodeGroupSources(static=(static(),)), NodeGroupSources(by_label=LabelGroups("pool"))]
)
def test_karpenter_is_seen_by_its_nodes(source: NodeGroupSources) -> None:
    nodes = (node("n1", labels={**POOL_A, "karpenter.sh/nodepool": "default"}),)
    (group,) = node_groups(source, state(nodes=nodes), 0.0).groups
    assert group.autoscaler == "Karpenter (NodePool default)"


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param(pod("p", "3", node="n1", controller=controller("none", "DaemonSet")), id="no-such-daemon-set"),
        pytest.param(
            pod("p", "3", node="n1", controller=controller("d", "DaemonSet"), namespace="evil"), id="other-namespace"
        ),
        pytest.param(
            pod("p", "3", node="n1", controller=controller("d", "DaemonSet", "evil.example/v1")), id="other-api-group"
        ),
        pytest.param(
            pod("p", "3", node="n1", annotations={"kubernetes.io/config.mirror": "x"}), id="annotated-as-mirror-pod"
        ),
        pytest.param(pod("p", "3", node="n1", controller=controller("n2", "Node", "v1")), id="of-another-node"),
        pytest.param(
            pod("p", "3", node="n1", controller=controller("n1", "Node", "evil.example/v1")), id="no-node-at-all"
        ),
    ],
)
def test_a_pod_that_only_claims_to_come_with_its_node_takes_no_room_on_new_ones(forged: ClusterPod) -> None:
    found = group_of(static(), daemon_set("d"), nodes=(node("n1", labels=POOL_A),), pods=(forged,))
    assert found.template is not None
    assert found.template.pods == ()


def test_pods_of_daemon_sets_come_with_the_node_where_no_daemon_set_is_known() -> None:
    daemon = pod("d1", node="n1", controller=controller("d", "DaemonSet"))
    found = group_of(static(), nodes=(node("n1", labels=POOL_A),), pods=(daemon,))
    assert found.template is not None
    assert len(found.template.pods) == 1
