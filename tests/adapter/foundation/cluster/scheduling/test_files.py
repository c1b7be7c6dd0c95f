"""The facts about scheduling that files state: constraints of pods, budgets, storage, and what is left out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.files.folder import ClusterFolder
from adapter.foundation.cluster.files.reading import read_contents, read_file, state_of
from adapter.foundation.cluster.scheduling.kinds import SCHEDULING_KINDS
from adapter.foundation.cluster.values.constraints import NodeSelectorTerm, PodScheduling
from adapter.foundation.cluster.values.state import ClusterNeeds, LeftOut, ObjectKind, Observed, Unknown
from adapter.foundation.cluster.values.storage import CsiNodeFacts, StorageClassFacts, Volume, VolumeClaim
from adapter.foundation.cluster.values.workloads import DisruptionBudget
from adapter.foundation.objects.requirements import Operator, Requirement
from adapter.foundation.objects.resources import BUILT_IN
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from tests.adapter.foundation.cluster.scheduling.objects import api_object, budget, claim, workload
from tests.adapter.foundation.cluster.scheduling.states import NEEDS, NODE, NOW, node_of, pods_of, state
from tests.adapter.foundation.cluster.test_files import written
from tests.support.cluster_objects import Json, node_object, pod_object

if TYPE_CHECKING:
    from pathlib import Path


MACHINES = ObjectKind("cluster.x-k8s.io", "machinedeployments", "MachineDeployment")
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
"""Short names as `kubectl api-resources` prints them."""


def test_pods_have_scheduling_facts_only_if_scheduling_is_needed(tmp_path: Path) -> None:
    objects = (NODE, pod_object("a", node="n1", nodeSelector={"zone": "a"}))
    facts = pods_of(state(tmp_path, *objects))["a"].facts
    assert facts is not None
    assert facts.scheduling == PodScheduling(node_selector=(("zone", "a"),))
    without = state(tmp_path, *objects, needs=ClusterNeeds(nodes=True, pods=True))
    assert pods_of(without)["a"].facts is None
    assert without.storage is None
    assert isinstance(without.workloads, Unknown)


def test_json_and_yaml_give_the_same_state(tmp_path: Path) -> None:
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


def test_what_decides_about_the_removal_of_a_node_is_read(tmp_path: Path) -> None:
    kept = {
        "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
        "delay-deletion.cluster-autoscaler.kubernetes.io/x": "",
        "cluster.x-k8s.io/machine": "m1",
    }
    content = node_object("n1")
    content["metadata"] |= {"annotations": kept | {"note": "x"}, "deletionTimestamp": "2026-11-22T05:00:30Z"}
    content["spec"]["providerID"] = "aws:///i-1"
    content["status"]["nodeInfo"] = {"systemUUID": "EC2A1B2C", "machineID": "0"}
    del content["status"]["allocatable"]
    node = node_of(state(tmp_path, content))
    assert (node.annotations, node.provider_id, node.is_terminating) == (kept, "aws:///i-1", True)
    assert node.system_uuid == "EC2A1B2C"
    assert node.allocatable == node.capacity


def test_budgets_state_which_pods_they_protect(tmp_path: Path) -> None:
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


def test_claims_volumes_classes_and_csi_nodes_are_read(tmp_path: Path) -> None:
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
    fast = StorageClassFacts("fast", "ebs", binds_at_first_consumer=True, allowed_topologies=(term,))
    assert found.classes == Observed({"fast": fast}, NOW)
    assert found.csi_nodes == Observed({"n1": CsiNodeFacts("n1", {"ebs": 25})}, NOW)


def test_namespaces_have_the_label_with_their_name(tmp_path: Path) -> None:
    namespace = api_object("v1", "Namespace", "shop", metadata={"labels": {"team": "a"}})
    assert state(tmp_path, namespace).namespace_labels == Observed(
        {"shop": {"team": "a", "kubernetes.io/metadata.name": "shop"}}, NOW
    )


def test_kinds_that_no_file_contains_count_as_absent_and_are_reported(tmp_path: Path) -> None:
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


def test_the_suggested_command_gets_every_kind_that_is_read(tmp_path: Path) -> None:
    (problem,) = state(tmp_path, NODE).placement_problems
    listed = problem.partition("kubectl get ")[2].partition(" ")[0].split(",")
    known = {**SHORT_NAMES, **{resource.plural: resource.kind for resource in BUILT_IN}}
    assert {known[name] for name in listed} == {"Node", "Pod", *(kind.name for kind in SCHEDULING_KINDS)}


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


def test_a_followed_folder_gives_the_same_state_as_its_files(tmp_path: Path) -> None:
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


def test_a_toleration_of_prefer_no_schedule_is_accepted(tmp_path: Path) -> None:
    toleration = {"key": "a", "operator": "Exists", "effect": "PreferNoSchedule"}
    found = state(tmp_path, node_object("n1"), pod_object("a", node="n1", tolerations=[toleration]))
    assert found.left_out == ()
