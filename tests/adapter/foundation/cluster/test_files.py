"""The facts of a cluster from files, as kubectl prints them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from adapter.foundation.cluster.files.reading import ClusterFilesError, read_contents, read_whole_objects, state_of
from adapter.foundation.cluster.values.hpas_by_namespace import EVERYWHERE
from adapter.foundation.cluster.values.state import (
    ClusterNeeds,
    ClusterState,
    CountQuery,
    ObjectKind,
    Observed,
    Unknown,
)
from recommender.decisions.record import TargetReference
from tests.support.cluster_objects import (
    Json,
    autoscaler_object,
    endpoint,
    list_object,
    node_object,
    plain_object,
    slice_object,
)

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1795327200.0
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
NEEDS = ClusterNeeds(
    nodes=True,
    autoscaler_namespaces=frozenset({"shop", "empty"}),
    counts=frozenset(
        {
            CountQuery("pods"),
            CountQuery("pods", "shop"),
            CountQuery("pods", "", "app in (web,api)"),
            CountQuery("services", "talk"),
            CountQuery("namespaces"),
            CountQuery("namespaces", "", "team=a"),
            CountQuery("endpoints"),
            CountQuery("endpoints", "shop", "app=web"),
        }
    ),
)
OBJECTS = [
    node_object("b", "1500m"),
    node_object("a", "2", unschedulable=True),
    autoscaler_object("web", "shop", WEB),
    autoscaler_object("chat", "talk", WEB),
    plain_object("Pod", "web-1", "shop", {"app": "web"}),
    plain_object("Pod", "web-2", "shop", {"app": "web"}),
    plain_object("Pod", "db-1", "shop", {"app": "db"}),
    plain_object("Pod", "api-1", None, {"app": "api"}),
    plain_object("Service", "web", "shop"),
    plain_object("Namespace", "shop", None, {"team": "a"}),
    plain_object("Namespace", "talk"),
    slice_object("web-1", "shop", "web", [endpoint("10.0.0.1"), endpoint("10.0.0.2")]),
    slice_object("web-2", "shop", "web", [endpoint("10.0.0.2"), endpoint("10.0.0.3", ready=False)]),
    slice_object("both", "shop", "other", [endpoint("10.0.0.1")], app="other"),
    slice_object("chat", "talk", "chat", [endpoint("10.0.0.9", ready=None)]),
]
COUNTS = {
    CountQuery("pods"): 4,
    CountQuery("pods", "shop"): 3,
    CountQuery("pods", "", "app in (web,api)"): 3,
    CountQuery("services", "talk"): 0,
    CountQuery("namespaces"): 2,
    CountQuery("namespaces", "", "team=a"): 1,
    CountQuery("endpoints"): 4,
    CountQuery("endpoints", "shop", "app=web"): 2,
}


def written(path: Path, *objects: Json) -> Path:
    """Write the objects in the format that the name of the file says."""
    if path.suffix == ".yaml":
        path.write_text(yaml.safe_dump_all(objects))
    else:
        path.write_text(json.dumps(list_object(*objects), indent=4))
    return path


def read(path: Path, needs: ClusterNeeds = NEEDS) -> ClusterState:
    return state_of(read_contents(path), needs, NOW, path)


@pytest.mark.parametrize("name", ["cluster.json", "cluster.yaml", "cluster"])
def test_needed_facts_are_read_from_a_file(name: str, tmp_path: Path) -> None:
    state = read(written(tmp_path / name, *OBJECTS))
    assert isinstance(state.nodes, Observed)
    assert state.nodes.time == NOW
    assert [node.name for node in state.nodes.value] == ["a", "b"]
    shop = state.autoscalers["shop"]
    assert isinstance(shop, Observed)
    assert [found.name for found in shop.value] == ["web"]
    assert state.autoscalers["empty"] == Observed((), NOW)
    assert state.counts == {query: Observed(count, NOW) for query, count in COUNTS.items()}
    assert state.problems == ()


def test_json_and_yaml_give_the_same_state(tmp_path: Path) -> None:
    assert read(written(tmp_path / "a.json", *OBJECTS)) == read(written(tmp_path / "a.yaml", *OBJECTS))


def test_the_files_of_a_folder_count_together_and_the_later_file_wins(tmp_path: Path) -> None:
    written(tmp_path / "1.json", *OBJECTS)
    written(tmp_path / "2.yaml", node_object("a", "8"), node_object("c", "1"))
    (tmp_path / "notes.txt").write_text("not an object")
    state = read(tmp_path)
    assert isinstance(state.nodes, Observed)
    assert {node.name: str(node.allocatable["cpu"]) for node in state.nodes.value} == {"a": "8", "b": "1500m", "c": "1"}


def test_facts_that_are_not_needed_are_left_out(tmp_path: Path) -> None:
    assert read(written(tmp_path / "all.json", *OBJECTS), ClusterNeeds()) == ClusterState()


def absent(path: Path, kind: str, command: str) -> Unknown:
    return Unknown(
        f"{path} contains no {kind}: add the output of `{command}`; if that has no items either, kubectl asked a "
        f"cluster without {kind}: `kubectl config current-context` names it"
    )


@pytest.mark.parametrize("kind", ["List", "NodeList"])
def test_the_error_for_an_empty_node_list_suggests_checking_the_context(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "empty.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": kind, "items": []}))
    state = read(path, ClusterNeeds(nodes=True))
    assert state.nodes == absent(path, "nodes", "kubectl get nodes -o json")


def test_a_kind_without_any_object_is_unknown_and_not_0(tmp_path: Path) -> None:
    path = written(tmp_path / "pods.json", plain_object("Pod", "web-1", "shop"))
    state = read(
        path, ClusterNeeds(nodes=True, counts=frozenset({CountQuery("services"), CountQuery("pods", "other")}))
    )
    assert state.nodes == absent(path, "nodes", "kubectl get nodes -o json")
    assert state.counts == {
        CountQuery("services"): absent(path, "services", "kubectl get services -A -o json"),
        CountQuery("pods", "other"): Observed(0, NOW),
    }


def test_a_node_that_cannot_be_used_is_left_out_and_named(tmp_path: Path) -> None:
    state = read(written(tmp_path / "nodes.json", node_object("a"), node_object("b", "four")), ClusterNeeds(nodes=True))
    assert isinstance(state.nodes, Observed)
    assert [node.name for node in state.nodes.value] == ["a"]
    assert [problem.partition(" is no")[0] for problem in state.problems] == ["Node b: status.allocatable.cpu: 'four'"]


def test_nodes_are_unknown_if_none_is_usable(tmp_path: Path) -> None:
    nodes = read(written(tmp_path / "nodes.json", node_object("b", "four")), ClusterNeeds(nodes=True)).nodes
    assert isinstance(nodes, Unknown)
    assert nodes.reason.startswith("Node b: status.allocatable.cpu: 'four'")


def test_an_hpa_that_cannot_be_used_makes_the_owners_of_its_namespace_unknown(tmp_path: Path) -> None:
    path = written(tmp_path / "hpas.json", autoscaler_object("odd", "shop", {}), autoscaler_object("x", "talk", WEB))
    state = read(path, ClusterNeeds(autoscaler_namespaces=frozenset({"shop", "talk"})))
    assert isinstance(state.autoscalers["shop"], Unknown)
    assert "HorizontalPodAutoscaler shop/odd: spec.scaleTargetRef" in state.autoscalers["shop"].reason
    assert isinstance(state.autoscalers["talk"], Observed)


def test_with_all_namespaces_an_invalid_hpa_makes_only_its_own_namespace_unknown(tmp_path: Path) -> None:
    path = written(tmp_path / "hpas.json", autoscaler_object("odd", "shop", {}), autoscaler_object("x", "talk", WEB))
    state = read(path, ClusterNeeds(autoscaler_namespaces=frozenset({EVERYWHERE})))
    assert isinstance(state.autoscalers["shop"], Unknown)
    assert isinstance(state.autoscalers["talk"], Observed)


def test_a_count_with_an_unreadable_selector_is_unknown(tmp_path: Path) -> None:
    query = CountQuery("pods", "", "app in web")
    state = read(written(tmp_path / "all.json", *OBJECTS), ClusterNeeds(counts=frozenset({query})))
    found = state.counts[query]
    assert isinstance(found, Unknown)
    assert found.reason.startswith("the selector 'app in web' cannot be read: ")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.json", "{}", "kind is missing"),
        ("x.json", " ", "the file is empty"),
        ("x.yaml", "a: [", "x.yaml:2: not YAML"),
        (
            "x.json",
            json.dumps(list_object(node_object("n1") | {"status": {"conditions": "all"}})),
            "Node n1: Expected `array | null`, got `str`",
        ),
    ],
)
def test_a_file_without_valid_objects_is_refused(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ClusterFilesError) as raised:
        read(tmp_path / name)
    assert str(raised.value).startswith(str(tmp_path / name))
    assert message in str(raised.value)


def test_a_missing_file_and_a_folder_without_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ClusterFilesError, match=r"none\.json: the file cannot be read: No such file or directory"):
        read(tmp_path / "none.json")
    with pytest.raises(ClusterFilesError, match=r"there is no \*\.json and no \*\.yaml in this folder"):
        read(tmp_path)


def test_targets_of_any_kind_are_found(tmp_path: Path) -> None:
    scaled = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 4}}
    path = written(
        tmp_path / "all.json",
        scaled | {"apiVersion": "apps/v1", "kind": "Deployment"},
        scaled | {"apiVersion": "example.com/v1", "kind": "Game", "spec": {"replicas": "many"}},
        scaled | {"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": {"name": "f"}},
    )
    contents = read_contents(path)
    deployment = contents.target(TargetReference("apps/v1beta1", "Deployment", "shop", "web"), NOW)
    fleet = contents.target(TargetReference("example.com/v2", "Fleet", "default", "f"), NOW)
    sizes = [found.value.replicas for found in (deployment, fleet) if isinstance(found, Observed) and found.value]
    assert sizes == [4, 4]
    game = contents.target(TargetReference("example.com/v1", "Game", "shop", "web"), NOW)
    assert isinstance(game, Unknown)
    assert game.reason.startswith("Game web: the size cannot be read")
    assert contents.target(TargetReference("apps/v1", "Deployment", "talk", "web"), NOW) == Observed(None, NOW)


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_only_the_requested_kinds_are_read_whatever_else_a_file_contains(suffix: str, tmp_path: Path) -> None:
    machines = ObjectKind("cluster.x-k8s.io", "machines", "Machine")
    machine = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "m"}, "spec": {"a": 1}}
    broken = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": 7}}
    written(tmp_path / f"all.{suffix}", broken, machine)
    contents = read_whole_objects(tmp_path, frozenset({machines}))
    state = state_of(contents, ClusterNeeds(objects=frozenset({machines})), 0.0, tmp_path)
    assert state.objects == {machines: Observed((machine,), 0.0)}
    assert not contents.nodes
