"""Objects of files that cannot be read, or that contradict each other, are left out by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.files.reading import ClusterFilesError, read_contents, read_file, state_of
from adapter.foundation.cluster.values.state import ClusterState, LeftOut
from tests.adapter.foundation.cluster.scheduling.objects import claim, workload
from tests.adapter.foundation.cluster.scheduling.states import NEEDS, NODE, NOW, node_of, pods_of, state
from tests.adapter.foundation.cluster.test_files import written
from tests.support.cluster_objects import Json, list_object, node_object, pod_object

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.cluster.files.contents import Contents


def reasons(state: ClusterState) -> list[str]:
    return [one.reason for one in state.left_out]


BROKEN_PODS: dict[str, tuple[Json, str]] = {
    "labels of another type": ({"metadata": {"name": "a", "namespace": "shop", "labels": 5}}, "Expected `object"),
    "version": ({"apiVersion": "v2"}, "Pod shop/a: the apiVersion v2 is not known: write the object as v1"),
    "constraint": ({"spec": {"containers": [{"name": "c"}], "affinity": 5}}, "Pod shop/a: spec.affinity"),
    "containers of another type": ({"spec": {"containers": 5}}, "Expected `array | null`"),
    "no spec": ({"spec": None}, "spec.containers is missing"),
}


@pytest.mark.parametrize("case", BROKEN_PODS)
def test_a_pod_that_cannot_be_read_is_left_out_and_named(case: str, tmp_path: Path) -> None:
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


def test_pods_on_nodes_that_do_not_exist_are_not_counted(tmp_path: Path) -> None:
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


def test_the_last_of_several_objects_with_one_name_is_used_and_the_others_are_named(tmp_path: Path) -> None:
    objects = (NODE, node_object("n1", cpu="8"), pod_object("a", node="n1"), pod_object("a"), claim("d"), claim("d"))
    found = state(tmp_path, *objects)
    assert node_of(found).allocatable["cpu"].nanos == 8 * 10**9
    assert pods_of(found)["a"].node == ""
    expected = [("Node", "n1"), ("PersistentVolumeClaim", "d"), ("Pod", "a")]
    assert [(one.kind, one.name) for one in found.left_out] == expected
    assert all("more than once: the last one is used" in reason for reason in reasons(found))


def test_objects_with_one_name_in_several_files_are_named(tmp_path: Path) -> None:
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


def test_items_that_are_not_objects_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    path.write_text(json.dumps(list_object(NODE) | {"items": [NODE, 5, pod_object("a")]}))
    found = state_of(read_contents(path, needs=NEEDS), NEEDS, NOW, path)
    assert list(pods_of(found)) == ["a"]
    assert len(found.left_out) == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"null", "Expected `object`, got `null`", id="null"),
        pytest.param(json.dumps([NODE]).encode(), "Expected `object`, got `array`", id="items-without-a-list"),
        pytest.param(b"Warning: v1 is old\n" + json.dumps(NODE).encode(), "JSON is malformed", id="a-line-before"),
        pytest.param(json.dumps(list_object(NODE)).encode("utf-16-le"), "JSON is malformed", id="utf-16-unmarked"),
        pytest.param(json.dumps(NODE).encode("utf-16")[:-1], "not UTF-16: truncated data", id="utf-16-cut"),
        pytest.param(json.dumps(NODE).encode()[:-9], "Input data was truncated", id="cut"),
    ],
)
def test_json_that_is_not_an_object_is_refused(body: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    path.write_bytes(body)
    with pytest.raises(ClusterFilesError, match=reason):
        read_contents(path, needs=NEEDS)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["all.json", "all.yaml", "all"])
@pytest.mark.parametrize(
    "read", [read_contents, lambda path, needs: read_file(path, needs=needs)], ids=["once", "followed"]
)
def test_a_byte_order_mark_determines_the_encoding_of_a_file(
    read: Callable[..., Contents], name: str, newline: str, encoding: str, tmp_path: Path
) -> None:
    """As Windows PowerShell writes what kubectl prints, if it is redirected to a file."""
    path, text = tmp_path / name, json.dumps(list_object(NODE, pod_object("a"), pod_object("b")), indent=2)
    path.write_bytes(text.replace("\n", newline).encode(encoding))
    found = state_of(read(path, needs=NEEDS), NEEDS, NOW, path)
    assert list(pods_of(found)) == ["a", "b"]
    assert found.left_out == ()


def test_a_file_with_a_broken_object_is_refused_if_scheduling_is_not_needed(tmp_path: Path) -> None:
    path = written(tmp_path / "all.json", NODE, pod_object("a") | {"metadata": {"name": "a", "labels": 5}})
    with pytest.raises(ClusterFilesError, match="labels"):
        read_contents(path)
