"""What files state about scheduling: constraints of pods, workloads, budgets, storage, and what is left out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.files.folder import ClusterFolder
from adapter.foundation.cluster.files.reading import ClusterFilesError, read_contents, read_file, state_of
from adapter.foundation.cluster.scheduling.kinds import SCHEDULING_KINDS
from adapter.foundation.cluster.values.constraints import NodeSelectorTerm, PodScheduling
from adapter.foundation.cluster.values.state import (
    ClusterNeeds,
    ClusterNode,
    ClusterPod,
    ClusterState,
    ControllerReference,
    LeftOut,
    ObjectKind,
    Observed,
    Unknown,
)
from adapter.foundation.cluster.values.storage import CsiNodeFacts, StorageClassFacts, Volume, VolumeClaim
from adapter.foundation.cluster.values.workloads import DisruptionBudget, WorkloadFacts
from adapter.foundation.objects.requirements import Operator, Requirement
from adapter.foundation.objects.resources import BUILT_IN
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from tests.adapter.foundation.cluster.scheduling.objects import api_object, budget, claim, workload
from tests.adapter.foundation.cluster.test_files import written
from tests.support.cluster_objects import Json, list_object, node_object, pod_object

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NOW = 1795327200.0
MACHINES = ObjectKind("cluster.x-k8s.io", "machinedeployments", "MachineDeployment")
NEEDS = ClusterNeeds(nodes=True, pods=True, scheduling=True)
NODE = node_object("n1")
SHORT_NAMES = {
    "no": "Node",
    "po": "Pod",
    "deploy": "Deployment",
    "rs": "ReplicaSet",
    "sts": "StatefulSet",
    "ds": "DaemonSet",
    "rc": "ReplicationController",
    "pdb": "PodDisruptionBudget",
    "ns": "Namespace",
    "pvc": "PersistentVolumeClaim",
    "pv": "PersistentVolume",
    "sc": "StorageClass",
    "pc": "PriorityClass",
}
"""As `kubectl api-resources` prints them."""


def state(folder: Path, *objects: Json, needs: ClusterNeeds = NEEDS, name: str = "all.json") -> ClusterState:
    path = written(folder / name, *objects)
    return state_of(read_contents(path, needs=needs), needs, NOW, path)


def pods_of(state: ClusterState) -> Mapping[str, ClusterPod]:
    assert isinstance(state.pods, Observed), state.pods
    return {pod.name: pod for pod in state.pods.value}


def workloads_of(state: ClusterState) -> Mapping[tuple[str, str], WorkloadFacts]:
    assert isinstance(state.workloads, Observed), state.workloads
    return {(one.kind, one.name): one for one in state.workloads.value}


def node_of(state: ClusterState) -> ClusterNode:
    assert isinstance(state.nodes, Observed), state.nodes
    return state.nodes.value[0]


def reasons(state: ClusterState) -> list[str]:
    return [one.reason for one in state.left_out]


def test_pods_have_facts_only_where_scheduling_is_needed(tmp_path: Path) -> None:
    objects = (NODE, pod_object("a", node="n1", nodeSelector={"zone": "a"}))
    facts = pods_of(state(tmp_path, *objects))["a"].facts
    assert facts is not None
    assert facts.scheduling == PodScheduling(node_selector=(("zone", "a"),))
    without = state(tmp_path, *objects, needs=ClusterNeeds(nodes=True, pods=True))
    assert pods_of(without)["a"].facts is None
    assert without.storage is None
    assert isinstance(without.workloads, Unknown)


def test_json_and_yaml_state_the_same(tmp_path: Path) -> None:
    objects = (
        NODE,
        pod_object("a", node="n1", tolerations=[{"operator": "Exists"}]),
        workload("Deployment", "web"),
        budget("web", {"matchLabels": {"app": "web"}}),
        claim("data", volumeName="pv-1"),
        pod_object("b", tolerations=5),
    )
    assert state(tmp_path, *objects, name="a.yaml").left_out == state(tmp_path, *objects).left_out
    found = state(tmp_path, *objects, name="a.yaml")
    assert (found.workloads, found.disruption_budgets, found.pods) == (
        (same := state(tmp_path, *objects)).workloads,
        same.disruption_budgets,
        same.pods,
    )


def test_a_node_states_what_decides_about_its_removal(tmp_path: Path) -> None:
    kept = {
        "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
        "delay-deletion.cluster-autoscaler.kubernetes.io/x": "",
        "cluster.x-k8s.io/machine": "m1",
    }
    content = node_object("n1")
    content["metadata"] |= {"annotations": kept | {"note": "x"}, "deletionTimestamp": "2026-11-22T05:00:30Z"}
    content["spec"]["providerID"] = "aws:///i-1"
    del content["status"]["allocatable"]
    node = node_of(state(tmp_path, content))
    assert (node.annotations, node.provider_id, node.is_terminating) == (kept, "aws:///i-1", True)
    assert node.allocatable == node.capacity


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"])
def test_a_workload_states_its_size_and_its_template(kind: str, tmp_path: Path) -> None:
    found = workloads_of(state(tmp_path, workload(kind, "web", nodeSelector={"a": "b"})))[kind, "web"]
    assert (found.namespace, found.uid, found.replicas, found.problem) == ("shop", "uid-web", 2, "")
    template = found.template
    assert template is not None
    assert template.facts is not None
    api_version = "v1" if kind == "ReplicationController" else "apps/v1"
    assert template.controller == ControllerReference(api_version, kind, "web", "uid-web")
    assert (template.namespace, template.name, template.node, template.labels) == ("shop", "", "", {"app": "web"})
    assert template.resources.requests == {"cpu": 500}
    assert template.facts.scheduling == PodScheduling(node_selector=(("a", "b"),))


def test_a_job_has_its_parallelism_and_a_daemon_set_no_size(tmp_path: Path) -> None:
    job = workload("Job", "sum")
    job["spec"]["parallelism"] = 4
    found = workloads_of(state(tmp_path, job, workload("Job", "one"), workload("DaemonSet", "agent")))
    sizes = {name: one.replicas for (_, name), one in found.items()}
    assert sizes == {"sum": 4, "one": 1, "agent": None}


def test_pods_of_a_daemon_set_tolerate_what_its_controller_adds(tmp_path: Path) -> None:
    found = workloads_of(state(tmp_path, workload("DaemonSet", "agent", hostNetwork=True)))["DaemonSet", "agent"]
    assert found.template is not None
    assert found.template.facts is not None
    keys = {one.key.rpartition("/")[2] for one in found.template.facts.scheduling.tolerations}
    assert keys == {
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
        "network-unavailable",
    }


def test_the_template_of_a_deployment_is_that_of_its_newest_replica_set(tmp_path: Path) -> None:
    def replica_set(revision: int) -> Json:
        content = workload("ReplicaSet", f"web-{revision}", labels={"hash": str(revision)}, owner=("Deployment", "web"))
        content["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": str(revision)}
        return content

    found = workloads_of(state(tmp_path, replica_set(9), workload("Deployment", "web"), replica_set(10)))
    template = found["Deployment", "web"].template
    assert template is not None
    assert template.labels == {"hash": "10"}
    assert template.controller == ControllerReference("apps/v1", "ReplicaSet", "web-10", "uid-web-10")


def test_priorities_of_templates_come_from_classes(tmp_path: Path) -> None:
    classes = [
        api_object("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000),
        api_object("scheduling.k8s.io/v1", "PriorityClass", "usual", value=5, globalDefault=True),
    ]
    found = state(
        tmp_path,
        *classes,
        workload("Deployment", "a", priorityClassName="high"),
        workload("Deployment", "b", priorityClassName="system-node-critical"),
        workload("Deployment", "c"),
        workload("Deployment", "d", priorityClassName="high", priority=7),
        workload("Deployment", "e", priorityClassName="gone"),
    )
    priorities = [one.template.priority for one in workloads_of(found).values() if one.template]
    assert priorities == [1000, 2_000_001_000, 5, 7, 5]
    assert "1 workloads name the PriorityClass gone, which is not known" in found.placement_problems[-1]


def test_a_template_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    found = state(tmp_path, workload("Deployment", "web", tolerations=[{"operator": "Like"}]))
    one = workloads_of(found)["Deployment", "web"]
    assert one.template is None
    assert "Deployment shop/web: spec.template: spec.tolerations[0]" in one.problem
    assert found.left_out == (LeftOut("Deployment", "shop", "web", one.problem),)


def test_budgets_state_whom_they_protect(tmp_path: Path) -> None:
    found = state(
        tmp_path,
        budget("a", {"matchLabels": {"app": "web"}}),
        budget("b", {}, 0),
        budget("c", None),
        budget("d", {}, None),
    ).disruption_budgets
    assert isinstance(found, Observed)
    assert found.value == (
        DisruptionBudget("shop", "a", parse_selector("app=web"), 1),
        DisruptionBudget("shop", "b", EVERYTHING, 0),
        DisruptionBudget("shop", "c", None, 1),
        DisruptionBudget("shop", "d", EVERYTHING, 0),
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}}, "operator 'Near'"),
        ({"spec": 5}, "Expected `object | null`, got `int`"),
        ({"apiVersion": "policy/v1beta1"}, "apiVersion policy/v1beta1 is not known: write the object as policy/v1"),
        ({"metadata": {"name": "web", "namespace": "shop", "labels": 5}}, "Expected `object | null`, got `int`"),
    ],
)
def test_a_budget_that_cannot_be_read_forbids_every_disruption(change: Json, reason: str, tmp_path: Path) -> None:
    found = state(tmp_path, budget("web", {}, 5) | change)
    assert isinstance(found.disruption_budgets, Observed)
    (one,) = found.disruption_budgets.value
    assert (one.selector, one.disruptions_allowed) == (EVERYTHING, 0)
    assert reason in one.problem
    assert found.left_out == (LeftOut("PodDisruptionBudget", "shop", "web", one.problem),)


def test_storage_states_where_volumes_may_be_used(tmp_path: Path) -> None:
    zone_a = [{"key": "zone", "operator": "In", "values": ["a"]}]
    found = state(
        tmp_path,
        claim(
            "data",
            volumeName="pv-1",
            storageClassName="fast",
            accessModes=["ReadWriteOnce"],
            resources={"requests": {"storage": "1Gi"}},
        ),
        claim("new", storageClassName=""),
        api_object(
            "v1",
            "PersistentVolume",
            "pv-1",
            metadata={"labels": {"zone": "a"}},
            spec={
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": zone_a}]}},
                "storageClassName": "fast",
                "capacity": {"storage": "2Gi"},
                "accessModes": ["ReadWriteOnce"],
                "csi": {"driver": "ebs", "volumeHandle": "vol-1"},
                "claimRef": {"namespace": "shop", "name": "data"},
            },
            status={"phase": "Bound"},
        ),
        api_object(
            "storage.k8s.io/v1",
            "StorageClass",
            "fast",
            metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            provisioner="ebs",
            volumeBindingMode="WaitForFirstConsumer",
            allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
        ),
        api_object(
            "storage.k8s.io/v1",
            "CSINode",
            "n1",
            spec={"drivers": [{"name": "ebs", "allocatable": {"count": 25}}, {"name": "nfs"}]},
        ),
    ).storage
    assert found is not None
    term = NodeSelectorTerm((Requirement("zone", Operator.IN, ("a",)),))
    modes = ("ReadWriteOnce",)
    assert isinstance(found.claims, Observed)
    assert found.claims.value == {
        ("shop", "data"): VolumeClaim(
            "shop", "data", "pv-1", "fast", is_bound=True, request_bytes=1 << 30, access_modes=modes
        ),
        ("shop", "new"): VolumeClaim("shop", "new", "", "", is_bound=False),
    }
    volume = Volume("pv-1", {"zone": "a"}, (term,), "fast", 2 << 30, modes, "ebs", "vol-1", ("shop", "data"), "Bound")
    assert found.volumes == Observed({"pv-1": volume}, NOW)
    assert found.classes == Observed(
        {"fast": StorageClassFacts("fast", "ebs", True, (term,), is_default=True)},  # noqa: FBT003 - as in the value
        NOW,
    )
    assert found.csi_nodes == Observed({"n1": CsiNodeFacts("n1", {"ebs": 25})}, NOW)


def test_namespaces_have_the_label_of_their_name(tmp_path: Path) -> None:
    namespace = api_object("v1", "Namespace", "shop", metadata={"labels": {"team": "a"}})
    assert state(tmp_path, namespace).namespace_labels == Observed(
        {"shop": {"team": "a", "kubernetes.io/metadata.name": "shop"}}, NOW
    )


def test_kinds_of_which_the_files_hold_nothing_count_as_absent_and_the_state_says_so(tmp_path: Path) -> None:
    found = state(tmp_path, NODE, pod_object("a"), budget("a", {}))
    assert found.storage is not None
    assert found.storage.claims == Observed({}, NOW)
    (problem,) = found.placement_problems
    assert (
        "holds no workloads, DaemonSets or volumes, so the answer is that of a cluster without them; `kubectl get "
        in (problem)
    )
    without = state(tmp_path, pod_object("a"))
    assert isinstance(without.nodes, Unknown)


def test_the_command_that_reads_all_names_every_kind_that_is_read(tmp_path: Path) -> None:
    (problem,) = state(tmp_path, NODE).placement_problems
    listed = problem.partition("kubectl get ")[2].partition(" ")[0].split(",")
    known = {**SHORT_NAMES, **{resource.plural: resource.kind for resource in BUILT_IN}}
    assert {known[name] for name in listed} == {"Node", "Pod", *(kind.name for kind in SCHEDULING_KINDS)}


BROKEN_PODS: dict[str, tuple[Json, str]] = {
    "labels of another type": ({"metadata": {"name": "a", "namespace": "shop", "labels": 5}}, "Expected `object"),
    "version": ({"apiVersion": "v2"}, "Pod shop/a: the apiVersion v2 is not known: write the object as v1"),
    "constraint": ({"spec": {"containers": [{"name": "c"}], "affinity": 5}}, "Pod shop/a: spec.affinity"),
    "containers of another type": ({"spec": {"containers": 5}}, "Expected `array | null`"),
    "no spec": ({"spec": None}, "spec.containers is missing"),
}


@pytest.mark.parametrize("case", BROKEN_PODS)
def test_a_pod_that_cannot_be_read_is_left_out_by_name(case: str, tmp_path: Path) -> None:
    change, reason = BROKEN_PODS[case]
    found = state(tmp_path, NODE, pod_object("a") | change, pod_object("b", node="n1"))
    assert list(pods_of(found)) == ["b"]
    (left_out,) = found.left_out
    assert (left_out.kind, left_out.namespace, left_out.name) == ("Pod", "shop", "a")
    assert reason in left_out.reason


@pytest.mark.parametrize("case", BROKEN_PODS)
def test_a_bound_pod_that_cannot_be_read_fills_its_node(case: str, tmp_path: Path) -> None:
    change, reason = BROKEN_PODS[case]
    content = pod_object("a", node="n1") | change
    content["spec"] = (content["spec"] or {}) | {"nodeName": "n1"}
    found = state(tmp_path, NODE, content)
    pod = pods_of(found)["a"]
    assert pod.facts is not None
    assert reason in pod.facts.problem
    assert found.left_out == (LeftOut("Pod", "shop", "a", pod.facts.problem),)
    if not pod.facts.are_requests_known:
        assert pod.resources.requests == {"cpu": 4000, "memory": 15 << 30, "pods": 110}


def test_pods_on_nodes_that_do_not_exist_take_no_place(tmp_path: Path) -> None:
    found = state(tmp_path, NODE, pod_object("a", node="gone"), pod_object("b", node="n1"))
    assert list(pods_of(found)) == ["b"]
    assert reasons(found) == [
        "Pod shop/a is bound to the node gone, which is not among the usable nodes: it is not counted"
    ]


def test_a_node_that_cannot_be_read_is_left_out_with_its_pods(tmp_path: Path) -> None:
    broken = node_object("n2", cpu="many")
    found = state(tmp_path, NODE, broken, node_object("n3") | {"spec": 5}, pod_object("a", node="n2"))
    assert node_of(found).name == "n1"
    assert [(one.kind, one.name) for one in found.left_out] == [("Node", "n2"), ("Node", "n3"), ("Pod", "a")]


def test_of_objects_of_one_name_the_last_counts_and_the_others_are_named(tmp_path: Path) -> None:
    objects = (NODE, node_object("n1", cpu="8"), pod_object("a", node="n1"), pod_object("a"), claim("d"), claim("d"))
    found = state(tmp_path, *objects)
    assert node_of(found).allocatable["cpu"].nanos == 8 * 10**9
    assert pods_of(found)["a"].node == ""
    expected = [("Node", "n1"), ("PersistentVolumeClaim", "d"), ("Pod", "a")]
    assert [(one.kind, one.name) for one in found.left_out] == expected
    assert all("more than once: the last one is used" in reason for reason in reasons(found))


def test_objects_of_one_name_in_several_files_are_named(tmp_path: Path) -> None:
    for name in ("1.json", "2.json"):
        written(tmp_path / name, NODE, pod_object("a"), claim("d"))
    found = state_of(read_contents(tmp_path, needs=NEEDS), NEEDS, NOW, tmp_path)
    assert [one.kind for one in found.left_out] == ["Node", "PersistentVolumeClaim", "Pod"]


def test_owners_that_own_each_other_are_named(tmp_path: Path) -> None:
    found = state(
        tmp_path,
        NODE,
        workload("Deployment", "web", owner=("ReplicaSet", "web-1")),
        workload("ReplicaSet", "web-1", owner=("Deployment", "web")),
        pod_object("a", node="n1", owner=("ReplicaSet", "web-1")),
        pod_object("self", node="n1", owner=("Pod", "self")),
    )
    facts = {name: pod.facts for name, pod in pods_of(found).items()}
    assert all(one is not None and "is its own owner" in one.owner_problem for one in facts.values())
    assert [one.kind for one in found.left_out] == ["Deployment", "Pod", "ReplicaSet"]
    assert "ReplicaSet shop/web-1 is its own owner (ReplicaSet web-1 -> Deployment web -> ReplicaSet web-1)" in (
        found.left_out[2].reason
    )


def test_an_object_without_a_name_is_left_out(tmp_path: Path) -> None:
    nameless = {"apiVersion": "v1", "kind": "Pod", "metadata": {}}
    found = state(tmp_path, NODE, nameless, {"metadata": {"name": "x"}}, pod_object("a"))
    assert list(pods_of(found)) == ["a"]
    assert [one.kind for one in found.left_out] == ["Pod", "object"]


def test_items_that_are_no_objects_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    path.write_text(json.dumps(list_object(NODE) | {"items": [NODE, 5, pod_object("a")]}))
    found = state_of(read_contents(path, needs=NEEDS), NEEDS, NOW, path)
    assert list(pods_of(found)) == ["a"]
    assert len(found.left_out) == 1


def test_broken_objects_refuse_a_file_where_scheduling_is_not_needed(tmp_path: Path) -> None:
    path = written(tmp_path / "all.json", NODE, pod_object("a") | {"metadata": {"name": "a", "labels": 5}})
    with pytest.raises(ClusterFilesError, match="labels"):
        read_contents(path)


def test_whole_objects_are_read_in_any_version(tmp_path: Path) -> None:
    machines = api_object(
        "cluster.x-k8s.io/v1beta2",
        "MachineDeployment",
        "pool",
        "infra",
        metadata={"annotations": {"a": "b"}, "managedFields": [{"manager": "m"}]},
        spec={"replicas": 3, "template": {}},
    )
    elsewhere = ObjectKind(MACHINES.group, MACHINES.resource, MACHINES.kind, "other")
    absent = ObjectKind("cluster.x-k8s.io", "machinepools", "MachinePool")
    other = ObjectKind(MACHINES.group, MACHINES.resource, MACHINES.kind, "infra", "other")
    needs = ClusterNeeds(objects=frozenset({MACHINES, elsewhere, other, absent}))
    found = state(tmp_path, machines, needs=needs).objects
    objects = found[MACHINES]
    assert isinstance(objects, Observed)
    (one,) = objects.value
    assert (one["apiVersion"], one["spec"]) == ("cluster.x-k8s.io/v1beta2", {"replicas": 3, "template": {}})
    assert one["metadata"] == {
        "name": "pool",
        "namespace": "infra",
        "labels": {},
        "uid": "uid-pool",
        "annotations": {"a": "b"},
    }
    assert found[elsewhere] == Observed((), NOW)
    assert found[other] == Observed((), NOW)
    missing = found[absent]
    assert isinstance(missing, Unknown)
    assert missing.is_refused
    assert "contains no MachinePool: add the output of `kubectl get machinepools.cluster.x-k8s.io" in missing.reason


def test_a_followed_folder_states_the_same_as_its_files(tmp_path: Path) -> None:
    needs = ClusterNeeds(nodes=True, pods=True, scheduling=True, objects=frozenset({MACHINES}))
    path = written(tmp_path / "all.json", NODE, pod_object("a", node="gone"), workload("Deployment", "web"), claim("d"))
    folder = ClusterFolder(tmp_path, wall_clock=lambda: NOW, needs=needs)
    unread = folder.state(needs)
    assert all(isinstance(one, Unknown) for one in (unread.workloads, unread.objects[MACHINES]))
    folder.refresh()
    assert folder.state(needs) == state_of(read_file(path, needs=needs), needs, NOW, tmp_path)


def test_items_of_a_typed_list_need_no_kind(tmp_path: Path) -> None:
    pods = [
        {key: value for key, value in pod_object(name).items() if key not in {"kind", "apiVersion"}} for name in "ab"
    ]
    path = tmp_path / "pods.json"
    path.write_text(json.dumps({"kind": "PodList", "apiVersion": "v1", "items": pods}))
    assert list(pods_of(state_of(read_contents(path, needs=NEEDS), NEEDS, NOW, path))) == ["a", "b"]


def test_a_pod_may_tolerate_taints_that_refuse_nothing(tmp_path: Path) -> None:
    toleration = {"key": "a", "operator": "Exists", "effect": "PreferNoSchedule"}
    found = state(tmp_path, node_object("n1"), pod_object("a", node="n1", tolerations=[toleration]))
    assert found.left_out == ()
