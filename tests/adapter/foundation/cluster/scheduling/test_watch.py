"""Scheduling facts from watches are those from files; some may be forbidden, or their kind not installed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adapter.foundation.cluster.files.reading import read_contents, state_of
from adapter.foundation.cluster.values.state import ClusterNeeds, ObjectKind, Observed, Unknown
from adapter.foundation.cluster.watch.whole_objects import served
from adapter.foundation.objects.resources import Resource
from tests.adapter.foundation.cluster.scheduling.objects import api_object, budget, claim, workload
from tests.adapter.foundation.cluster.test_files import NOW, written
from tests.adapter.foundation.cluster.watched_facts import watching
from tests.support.cluster_objects import Json, node_object, pod_object
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from adapter.foundation.cluster.values.state import ClusterState
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from tests.adapter.foundation.sources.kubernetes.conftest import Tasks
    from tests.support.fake_apiserver import FakeApiServer

NEEDS = ClusterNeeds(nodes=True, pods=True, scheduling=True)
GROUP = "cluster.x-k8s.io"
POOLS = ObjectKind(GROUP, "machinedeployments", "MachineDeployment")
OBJECTS = [
    node_object("n1"),
    pod_object(
        "web-1", node="n1", owner=("ReplicaSet", "web-1"), requests={"cpu": "1"}, tolerations=[{"operator": "Exists"}]
    ),
    pod_object("lost", node="gone"),
    pod_object("odd", node="n1", tolerations=[{"operator": "Like"}]),
    pod_object("pending", affinity=5),
    workload("Deployment", "web", priorityClassName="high"),
    workload("ReplicaSet", "web-1", owner=("Deployment", "web")),
    workload("StatefulSet", "db"),
    workload("DaemonSet", "agent"),
    workload("Job", "sum"),
    workload("ReplicationController", "old"),
    budget("web", {"matchLabels": {"app": "web"}}),
    api_object("v1", "Namespace", "shop", metadata={"labels": {"team": "a"}}),
    claim("data", volumeName="pv-1"),
    api_object("v1", "PersistentVolume", "pv-1", spec={"capacity": {"storage": "1Gi"}}),
    api_object("storage.k8s.io/v1", "StorageClass", "fast", provisioner="ebs"),
    api_object("storage.k8s.io/v1", "CSINode", "n1", spec={"drivers": []}),
    api_object("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000),
]


def put(server: FakeApiServer, content: Json) -> None:
    metadata: dict[str, Any] = dict(content["metadata"])
    resource = next(
        one for one in server.resources if (one.api_version, one.kind) == (content["apiVersion"], content["kind"])
    )
    metadata["resourceVersion"] = str(server.store.version + 1)
    server.store.put(resource, metadata.get("namespace", ""), metadata["name"], {}, content | {"metadata": metadata})


def machines(version: str, name: str = "pool", namespace: str = "infra") -> Json:
    return api_object(f"{GROUP}/{version}", "MachineDeployment", name, namespace, spec={"replicas": 3}, status={})


def machine_kind(version: str) -> Resource:
    return Resource(GROUP, version, "machinedeployments", "machinedeployment", "MachineDeployment", namespaced=True)


def objects_of(state: ClusterState, kind: ObjectKind = POOLS) -> list[object]:
    found = state.objects[kind]
    return [one["apiVersion"] for one in found.value] if isinstance(found, Observed) else []


def test_a_watch_gives_the_same_state_as_files(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks, tmp_path: Path
) -> None:
    for content in OBJECTS:
        put(server, content)
    watch = watching(client, tasks, NEEDS)
    path = written(tmp_path / "all.json", *OBJECTS)
    state = watch.state()
    assert state == state_of(read_contents(path, needs=NEEDS), NEEDS, NOW, path)
    assert [one.name for one in state.left_out] == ["lost", "odd", "pending"]


def test_only_the_forbidden_kinds_are_unknown(server: FakeApiServer, client: KubernetesClient, tasks: Tasks) -> None:
    for content in OBJECTS:
        put(server, content)
    server.forbid("list", "persistentvolumes")
    server.forbid("list", "poddisruptionbudgets")
    server.forbid("list", "jobs")
    state = watching(client, tasks, NEEDS).state()
    assert state.storage is not None
    assert isinstance(state.storage.volumes, Unknown)
    assert state.storage.volumes.is_refused
    assert "allow list and watch on persistentvolumes in the core group" in state.storage.volumes.reason
    assert isinstance(state.disruption_budgets, Unknown)
    assert isinstance(state.workloads, Unknown)
    assert isinstance(state.storage.claims, Observed)
    assert isinstance(state.namespace_labels, Observed)
    assert isinstance(state.pods, Observed)


def test_scheduling_that_is_no_longer_needed_is_no_longer_watched(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    put(server, OBJECTS[0])
    put(server, OBJECTS[1])
    watch = watching(client, tasks, NEEDS)
    watch.change(ClusterNeeds(nodes=True, pods=True))
    until(lambda: isinstance(watch.state().pods, Observed))
    state = watch.state()
    assert isinstance(state.pods, Observed)
    assert [pod.facts for pod in state.pods.value] == [None]
    assert state.storage is None


def test_whole_objects_are_watched_in_the_version_that_is_served(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    server.define(machine_kind("v1beta1"))
    put(server, machines("v1beta1"))
    put(server, machines("v1beta1", "other", "elsewhere"))
    infra = replace(POOLS, namespace="infra")
    watch = watching(client, tasks, ClusterNeeds(objects=frozenset({POOLS, infra})))
    assert objects_of(watch.state()) == [f"{GROUP}/v1beta1"] * 2
    found = watch.state().objects[infra]
    assert isinstance(found, Observed)
    (one,) = found.value
    assert one["kind"] == "MachineDeployment"
    assert one["spec"] == {"replicas": 3}
    assert one["metadata"]["uid"] == "uid-pool"  # type: ignore[index] # metadata is a dictionary
    server.store.remove(machine_kind("v1beta1"), "infra", "pool")
    until(lambda: objects_of(watch.state()) == [f"{GROUP}/v1beta1"])


def test_a_need_for_one_object_finds_no_other_object_of_its_kind(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    server.define(machine_kind("v1beta1"))
    put(server, machines("v1beta1"))
    put(server, machines("v1beta1", "other"))
    one = replace(POOLS, namespace="infra", name="other")
    watch = watching(client, tasks, ClusterNeeds(objects=frozenset({one})))
    found = watch.state().objects[one]
    assert isinstance(found, Observed)
    assert [each["metadata"]["name"] for each in found.value] == ["other"]  # type: ignore[index] # a dictionary
    server.store.remove(machine_kind("v1beta1"), "infra", "other")
    until(lambda: objects_of(watch.state(), one) == [])


def test_a_kind_that_is_not_installed_is_unknown_until_it_is_installed(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "RETRY_SECONDS", 0.05)
    watch = watching(client, tasks, ClusterNeeds(objects=frozenset({POOLS})))
    missing = watch.state().objects[POOLS]
    assert isinstance(missing, Unknown)
    assert missing.is_refused
    assert "the API server does not serve machinedeployments of the API group cluster.x-k8s.io" in missing.reason
    server.define(machine_kind("v1beta2"))
    put(server, machines("v1beta2"))
    until(lambda: objects_of(watch.state()) == [f"{GROUP}/v1beta2"])


def test_a_version_that_is_no_longer_served_is_replaced_by_another(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "RETRY_SECONDS", 0.05)
    server.define(machine_kind("v1beta1"))
    put(server, machines("v1beta1"))
    watch = watching(client, tasks, ClusterNeeds(objects=frozenset({POOLS})))
    until(lambda: server.watching(POOLS.resource))
    server.resources.remove(machine_kind("v1beta1"))
    server.define(machine_kind("v1beta2"))
    put(server, machines("v1beta2"))
    server.compact()
    server.expire_watches()
    until(lambda: objects_of(watch.state()) == [f"{GROUP}/v1beta2"])
