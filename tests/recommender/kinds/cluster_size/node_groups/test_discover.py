"""Node groups of each source, the template of a new node, and the pods that come with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.foundation.cluster.values.constraints import PodScheduling, Toleration
from adapter.foundation.cluster.values.state import ClusterPod, Observed, Unknown
from adapter.foundation.cluster.values.workloads import WorkloadFacts
from recommender.kinds.cluster_size.model.groups import GroupOptions, NodeGroup
from recommender.kinds.cluster_size.model.size_settings import (
    ExternalGrpcGroups,
    LabelGroups,
    NodeGroupSources,
    StaticGroup,
    TrustedDaemonSets,
)
from recommender.kinds.cluster_size.node_groups.discover import node_groups
from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginGroup, PluginReading
from tests.recommender.kinds.cluster_size.builders import controller, node, pod
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import state
from tests.recommender.kinds.cluster_size.node_groups.discovery_harness import POOL_A, static

GIB = 1 << 30
TRUSTS_DEFAULT = TrustedDaemonSets(frozenset({"kube-system", "default"}))


def daemon_set(
    name: str,
    cpu: str = "100m",
    *,
    priority: int = 0,
    scheduling: PodScheduling | None = None,
    namespace: str = "default",
) -> WorkloadFacts:
    made = pod(
        "",
        cpu,
        namespace=namespace,
        controller=controller(name, "DaemonSet"),
        priority=priority,
        scheduling=scheduling or PodScheduling(),
    )
    return WorkloadFacts("DaemonSet", namespace, name, f"uid-of-DaemonSet-{name}", None, made)


def group_of(
    stated: StaticGroup,
    *workloads: WorkloadFacts,
    pods: tuple[ClusterPod, ...] = (),
    trusted: TrustedDaemonSets | None = None,
    **facts: object,
) -> NodeGroup:
    harness = state(pods=pods, workloads=Observed(workloads, 0.0), **facts)  # type: ignore[arg-type]
    sources = NodeGroupSources(static=(stated,), daemon_sets=trusted or TrustedDaemonSets())
    (group,) = node_groups(sources, harness, 1000.0).groups
    return group


@pytest.mark.parametrize(
    "sources",
    [NodeGroupSources(static=(static(),)), NodeGroupSources(by_label=LabelGroups("pool"))],
    ids=["static", "byLabel"],
)
def test_nodes_that_an_autoscaler_removes_are_being_deleted(sources: NodeGroupSources) -> None:
    nodes = (
        node("n1", labels=POOL_A),
        node("n2", labels=POOL_A, taints=["ToBeDeletedByClusterAutoscaler=1:NoSchedule"]),
        node("n3", labels=POOL_A, is_terminating=True),
    )
    (group,) = node_groups(sources, state(nodes=nodes), 1000.0).groups
    assert (group.deleting, group.sure_size) == (("n2", "n3"), 1)


def test_a_static_group_has_the_configured_properties() -> None:
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


def test_without_a_template_the_newest_ready_node_is_the_template() -> None:
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
    tolerant = PodScheduling(tolerations=(Toleration("", "Exists"),))
    group = group_of(
        static(), daemon_set("d", scheduling=tolerant), daemon_set("other"), nodes=nodes, pods=(daemon, mirror, *others)
    )
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
        "cloud.google.com/impending-node-termination",
        "NodeWithImpairedVolumes",
        "node.kubernetes.io/disk-pressure",
        "ToBeDeletedByClusterAutoscaler",
        "node.cloudprovider.kubernetes.io/uninitialized",
    ],
)
def test_a_temporary_state_of_the_example_node_is_not_part_of_the_template(taint: str) -> None:
    group = group_of(static(), nodes=(node("n1", labels=POOL_A, taints=(f"{taint}:NoSchedule", "kept:NoSchedule")),))
    assert group.template is not None
    assert [one.key for one in group.template.node.taints] == ["kept"]


@pytest.mark.parametrize("taint", ["cloud.google.com/impending-node-termination", "NodeWithImpairedVolumes"])
def test_a_node_in_a_passing_state_of_its_cloud_is_the_example_only_if_there_is_no_other(taint: str) -> None:
    nodes = (
        node("new", "8", labels=POOL_A, created=600.0, taints=(f"{taint}:NoSchedule",)),
        node("old", labels=POOL_A),
    )
    group = group_of(static(), nodes=nodes)
    assert group.template is not None
    assert group.template.source == "node old"


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


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param({"old": (100.0, 990.0)}, "old", id="not-replaced-yet"),
        pytest.param({"old": (950.0, 990.0), "new": (900.0, None)}, "new", id="one-ends"),
        pytest.param({"new": (900.0, None), "old": (100.0, None)}, "new", id="both-run"),
    ],
)
def test_a_new_node_has_one_pod_of_a_daemon_set_that_is_being_updated(
    found: dict[str, tuple[float, float | None]], expected: str
) -> None:
    owner = controller("d", "DaemonSet")
    pods = tuple(pod(name, node="n1", controller=owner, created=at, deleted=end) for name, (at, end) in found.items())
    group = group_of(static(), daemon_set("d"), pods=pods, nodes=(node("n1", labels=POOL_A),))
    assert group.template is not None
    assert [one.name for one in group.template.pods] == [expected]


def test_a_daemon_set_without_room_on_a_template_takes_no_resources() -> None:
    stated = static(capacity={"cpu": 1000, "memory": GIB})
    group = group_of(
        stated,
        daemon_set("a", "600m"),
        daemon_set("b", "600m", priority=9),
        daemon_set("c", "300m"),
        trusted=TRUSTS_DEFAULT,
    )
    assert group.template is not None
    assert [one.name for one in group.template.pods] == ["b-template", "c-template"]


NEWEST = PodScheduling(node_selector=(("kubernetes.io/hostname", "new"),))
ELSEWHERE = PodScheduling(node_selector=(("pool", "b"),))


def hog(name: str, cpu: str, on: str, namespace: str = "evil") -> ClusterPod:
    return pod(f"{name}-1", cpu, node=on, namespace=namespace, controller=controller(name, "DaemonSet"))


@pytest.mark.parametrize("scheduling", [NEWEST, ELSEWHERE], ids=["hostname", "another pool"])
def test_a_daemon_set_that_matches_only_the_newest_node_does_not_count_on_new_nodes(scheduling: PodScheduling) -> None:
    """In an attack, every new node would seem full, so that no group would grow for any tenant."""
    nodes = (node("old", "4", labels=POOL_A, created=10.0), node("new", "4", labels=POOL_A, created=500.0))
    evil = daemon_set("hog", "3900m", scheduling=scheduling, namespace="evil")
    group = group_of(static(), daemon_set("cni"), evil, nodes=nodes, pods=(hog("hog", "3900m", "new"),))
    assert group.template is not None
    assert (group.template.source, group.template.pods, group.template.left_out) == ("node new", (), {})
    stated = group_of(static(capacity={"cpu": 4000, "memory": 4 * GIB}), daemon_set("cni"), evil)
    assert stated.template is not None
    assert [one.name for one in stated.template.pods] == ["cni-template"]


def test_daemon_sets_of_a_tenant_take_only_a_share_and_the_rest_is_reported() -> None:
    small = [daemon_set(f"hog{number}", "500m", namespace="evil") for number in range(8)]
    system = daemon_set("cni", "1500m", namespace="kube-system")
    sources = NodeGroupSources(static=(static(capacity={"cpu": 4000, "memory": 8 * GIB}),))
    harness = state(workloads=Observed((*small, system, daemon_set("log", "1")), 0.0))
    found = node_groups(sources, harness, 0.0)
    (group,) = found.groups
    assert group.template is not None
    names = sorted(one.name for one in group.template.pods)
    assert names == ["cni-template", "hog0-template", "hog1-template", "log-template"]
    named = [problem for problem in found.problems if problem.startswith("DaemonSet ")]
    assert named[0] == (
        "DaemonSet evil/hog2 is not counted on new nodes: the DaemonSets of its namespace would take 38% of cpu "
        "of a new node of a, and 25% is allowed: lower its requests, or add its namespace to daemonSets.namespaces"
    )
    assert len(named) == 6


@pytest.mark.parametrize("is_running", [False, True])
@pytest.mark.parametrize("namespace", ["kube-system", "monitoring"])
def test_daemon_sets_of_trusted_namespaces_count_whatever_they_request(namespace: str, *, is_running: bool) -> None:
    trusted = TrustedDaemonSets(frozenset({"kube-system", "monitoring"}))
    pods = (hog("d", "3500m", "n1", namespace),) if is_running else ()
    nodes = (node("n1", "4", labels=POOL_A),) if is_running else ()
    stated = static() if is_running else static(capacity={"cpu": 4000, "memory": 8 * GIB})
    group = group_of(stated, daemon_set("d", "3500m", namespace=namespace), pods=pods, nodes=nodes, trusted=trusted)
    assert group.template is not None
    assert len(group.template.pods) == 1


@pytest.mark.parametrize("uid", ["made-up", "uid-of-DaemonSet-other"])
def test_pods_of_forged_daemon_sets_do_not_count_on_new_nodes(uid: str) -> None:
    evil = pod("e", "200m", node="n1", controller=replace(controller("d", "DaemonSet"), uid=uid))
    group = group_of(static(), daemon_set("d"), pods=(evil,), nodes=(node("n1", "4", labels=POOL_A),))
    assert group.template is not None
    assert group.template.pods == ()


def test_a_group_without_node_and_template_is_reported_and_left_out() -> None:
    assert group_of(static()).problem == (
        "it has no ready node and no template, so the capacity of a new node is not known: "
        "write template.cpu and template.memory"
    )


def test_a_template_that_does_not_match_its_own_selector_is_reported() -> None:
    stated = static(selector="pool", capacity={"cpu": 1000, "memory": GIB})
    members = (node("n1", labels={"pool": "x"}),)
    (problem,) = node_groups(NodeGroupSources(static=(stated,)), state(nodes=members), 0.0).problems
    assert problem.startswith("node group a: its template does not have the labels")


@pytest.mark.parametrize(
    ("sources", "problem"),
    [
        (NodeGroupSources(static=(static(selector="pool=b"),)), "node group a: its selector pool=b matches no node"),
        (NodeGroupSources(by_label=LabelGroups("poool")), "byLabel: no node has the label poool"),
        (NodeGroupSources(), "no source under nodeGroups has a node group"),
    ],
)
def test_a_source_that_matches_nothing_is_reported(sources: NodeGroupSources, problem: str) -> None:
    found = node_groups(sources, state(nodes=(node("n1", labels=POOL_A),)), 0.0)
    assert [each.partition(", so")[0].partition(": check")[0] for each in found.problems] == [problem]


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


def test_a_node_in_two_groups_belongs_to_the_first_and_the_other_is_left_out() -> None:
    sources = NodeGroupSources(static=(static(), static("b", "")), by_label=LabelGroups("pool"))
    groups = node_groups(sources, state(nodes=(node("n1", labels={"pool": "a"}), node("n2"))), 0.0)
    assert groups.group_of == {"n1": "a", "n2": "b"}
    assert [bool(one.problem) for one in groups.groups] == [False, True]
    assert groups.problems == (
        "node group b: node n1 already belongs to a: each node may belong to only one group",
        "two node groups are named a: the second one is left out: rename one of them",
    )


@pytest.mark.parametrize("missing", ["nodes", "pods"])
def test_without_nodes_or_pods_there_are_no_groups(missing: str) -> None:
    harness = replace(state(nodes=(node("n1", labels=POOL_A),)), **{missing: Unknown("403")})  # type: ignore[arg-type]
    groups = node_groups(NodeGroupSources(static=(static(),)), harness, 0.0)
    assert (groups.groups, groups.problems) == ((), ("node groups are not known: 403",))


def test_without_workloads_the_missing_daemon_sets_of_templates_are_reported() -> None:
    harness = state(workloads=Unknown("403"))
    groups = node_groups(NodeGroupSources(static=(static(capacity={"cpu": 1000, "memory": GIB}),)), harness, 0.0)
    assert groups.problems[0].startswith("DaemonSets are not known")
    assert groups.problems[0].endswith("403")


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
        pytest.param(pod("p", "3", node="n1", controller=controller("n1", "Node", "evil.example/v1")), id="not-a-node"),
    ],
)
def test_a_forged_daemon_set_or_static_pod_takes_no_resources_of_new_nodes(forged: ClusterPod) -> None:
    found = group_of(static(), daemon_set("d"), nodes=(node("n1", labels=POOL_A),), pods=(forged,))
    assert found.template is not None
    assert found.template.pods == ()


def test_pods_of_daemon_sets_count_on_new_nodes_if_no_daemon_set_is_known() -> None:
    daemon = pod("d1", node="n1", controller=controller("d", "DaemonSet"))
    found = group_of(static(), nodes=(node("n1", labels=POOL_A),), pods=(daemon,))
    assert found.template is not None
    assert len(found.template.pods) == 1


@pytest.mark.parametrize(
    ("stated", "problem"),
    [
        pytest.param(PluginGroup("a", 0, 2**31 - 1, 2**31 - 1), "its size is 2147483647", id="size"),
        pytest.param(PluginGroup("a", 2**31 - 1, 2**31 - 1, 1), "its minimum is 2147483647", id="minimum"),
        pytest.param(PluginGroup("a", 2**31 - 1, 100_000, 100_000), "", id="the largest"),
    ],
)
def test_a_group_with_more_nodes_than_a_cluster_can_have_is_left_out(stated: PluginGroup, problem: str) -> None:
    made = replace(stated, template=node("template"))
    sources = NodeGroupSources(external_grpc=ExternalGrpcGroups("grpc:443"))
    [found] = node_groups(sources, state(), 1000.0, [PluginReading("externalGRPC", (made,))]).groups
    why = ", and no node group may have more than 100000 nodes: correct it" if problem else ""
    assert found.problem == problem + why


def test_the_largest_groups_that_together_lack_too_many_nodes_are_left_out() -> None:
    sizes = {"small": 3, "large": 60_000, "larger": 70_000, "largest": 99_999}
    stated = tuple(PluginGroup(name, 0, 100_000, size, template=node("template")) for name, size in sizes.items())
    sources = NodeGroupSources(external_grpc=ExternalGrpcGroups("grpc:443"))
    found = node_groups(sources, state(), 1000.0, [PluginReading("externalGRPC", stated)]).groups
    problems = {group.name: group.problem for group in found}
    assert (problems["small"], problems["large"]) == ("", "")
    assert problems["larger"] == (
        "70000 of its nodes do not exist yet, and all node groups together may miss no more than 100000 nodes: "
        "correct its size or its minimum"
    )
    assert problems["largest"].startswith("99999 of its nodes do not exist yet")
