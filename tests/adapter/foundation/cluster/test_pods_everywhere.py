"""Pods, what selects them, and addresses of nodes: the same by watch, from files and from a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapter.foundation.cluster.files.folder import ClusterFolder
from adapter.foundation.cluster.files.reading import read_contents, state_of
from adapter.foundation.cluster.values.state import ClusterNeeds, NodeAddress, Observed, PodSelector, Unknown
from tests.adapter.foundation.cluster.test_files import NOW, written
from tests.adapter.foundation.cluster.watched_facts import PLURALS, watching
from tests.support.cluster_objects import Json, node_object, pod_object, selecting_object
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.cluster.values.state import ClusterState
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from tests.adapter.foundation.sources.kubernetes.conftest import Tasks
    from tests.support.fake_apiserver import FakeApiServer

NEEDS = ClusterNeeds(nodes=True, pods=True, pod_selectors=True, gpu_annotation="gpus")
ADDRESSES = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "a.example"}]
WEB = {"matchLabels": {"app": "web"}}
OBJECTS = [
    node_object("a") | {"metadata": {"name": "a", "labels": {}, "creationTimestamp": "2026-01-01T00:00:00Z"}},
    pod_object("web-1", node="a", labels={"app": "web"}, requests={"cpu": "100m"}, owner=("ReplicaSet", "web")),
    pod_object("web-2", labels={"app": "web"}, annotations={"gpus": "0:500"}),
    pod_object("job-1", "batch", node="a", phase="Succeeded", ended="2026-11-22T05:30:00Z"),
    pod_object("odd", "batch", node="a", limits={"memory": "1GB"}),
    selecting_object("ReplicaSet", "web", WEB, replicas=2),
    selecting_object("ReplicaSet", "old", WEB, replicas=0),
    selecting_object("Service", "web", {"app": "web"}),
    selecting_object("StatefulSet", "db", {"matchLabels": {"app": "db"}}),
    selecting_object("ReplicationController", "rc", {"app": "rc"}),
]
OBJECTS[0]["status"]["addresses"] = ADDRESSES
PLURAL = PLURALS | {
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "ReplicationController": "replicationcontrollers",
}


def put(server: FakeApiServer, content: Json) -> None:
    metadata: dict[str, Any] = dict(content["metadata"])
    resource = next(one for one in server.resources if one.plural == PLURAL[content["kind"]])
    metadata["resourceVersion"] = str(server.store.version + 1)
    server.store.put(resource, metadata.get("namespace", ""), metadata["name"], {}, content | {"metadata": metadata})


def places(state: ClusterState) -> list[tuple[str, str]]:
    assert isinstance(state.pods, Observed), state.pods
    return [(pod.name, pod.node) for pod in state.pods.value]


def test_a_watch_files_and_a_folder_give_the_same_state(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks, tmp_path: Path
) -> None:
    for content in OBJECTS:
        put(server, content)
    watch = watching(client, tasks, NEEDS)
    path = written(tmp_path / "all.json", *OBJECTS)
    state = watch.state()
    assert state == state_of(read_contents(path, needs=NEEDS), NEEDS, NOW, path)
    folder = ClusterFolder(tmp_path, wall_clock=lambda: NOW, needs=NEEDS)
    folder.refresh()
    assert folder.state(NEEDS) == state
    assert folder.placed_pods() == watch.placed_pods()
    yaml = written(tmp_path / "all.yaml", *OBJECTS)
    assert state_of(read_contents(yaml, needs=NEEDS), NEEDS, NOW, yaml) == state

    assert places(state) == [("web-1", "a"), ("web-2", "")]
    assert isinstance(state.pods, Observed)
    assert state.pods.value[1].gpu_allocation == "0:500"
    assert isinstance(state.nodes, Observed)
    assert state.nodes.value[0].addresses == (
        NodeAddress("InternalIP", "10.0.0.1"),
        NodeAddress("Hostname", "a.example"),
    )
    assert state.pod_selectors == Observed(
        (
            PodSelector("Service", "shop", "web", "uid-web", "app=web"),
            PodSelector("ReplicationController", "shop", "rc", "uid-rc", "app=rc"),
            PodSelector("ReplicaSet", "shop", "web", "uid-web", "app=web"),
            PodSelector("StatefulSet", "shop", "db", "uid-db", "app=db"),
        ),
        NOW,
    )
    (problem,) = state.placement_problems
    assert problem.startswith("pods that cannot be used are left out (1); the first: Pod batch/odd: spec.containers[c]")


def test_a_bind_a_scale_to_zero_and_a_delete_reach_the_state(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    put(server, pod_object("web-1"))
    put(server, selecting_object("ReplicaSet", "web", WEB, replicas=2))
    watch = watching(client, tasks, NEEDS)
    assert places(watch.state()) == [("web-1", "")]
    put(server, pod_object("web-1", node="a"))
    put(server, selecting_object("ReplicaSet", "web", WEB, replicas=0))
    until(lambda: places(watch.state()) == [("web-1", "a")] and watch.state().pod_selectors == Observed((), NOW))
    view = watch.placed_pods()
    assert isinstance(view, Observed)
    assert [pod.name for pod in view.value.by_node["a"]] == ["web-1"]
    server.remove("pods", "shop", "web-1")
    until(lambda: places(watch.state()) == [])
    after = watch.placed_pods()
    assert isinstance(after, Observed)
    assert (after.value.by_node, after.value.last_ended_at) == ({}, {"a": NOW})


def test_another_gpu_annotation_reads_the_pods_again(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    put(server, pod_object("web-1", annotations={"gpus": "0:500", "others": "1:100"}))
    watch = watching(client, tasks, NEEDS)
    watch.change(ClusterNeeds(pods=True, gpu_annotation="others"))

    def allocations() -> list[str]:
        pods = watch.state().pods
        return [pod.gpu_allocation for pod in pods.value] if isinstance(pods, Observed) else []

    until(lambda: allocations() == ["1:100"])


def test_a_missing_permission_on_one_kind_of_selectors_makes_them_unknown(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    server.forbid("list", "statefulsets")
    state = watching(client, tasks, NEEDS).state()
    assert isinstance(state.pod_selectors, Unknown)
    assert state.pod_selectors.reason.startswith("statefulsets.apps: allow list and watch on statefulsets")
    assert state.pods == Observed((), NOW)


def test_pods_are_unknown_without_any_in_the_files_and_read_only_if_needed(tmp_path: Path) -> None:
    path = written(tmp_path / "nodes.json", node_object("a"))
    missing = state_of(read_contents(path, needs=NEEDS), NEEDS, NOW, path)
    assert isinstance(missing.pods, Unknown)
    assert "contains no pods: add the output of `kubectl get pods -A -o json`; if" in missing.pods.reason
    whole = written(tmp_path / "all.json", *OBJECTS)
    assert (read_contents(whole).pods, read_contents(whole).pod_selectors) == ({}, {})
