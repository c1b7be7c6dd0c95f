"""`recommend --cluster FILE` with cluster sizes: the table, the JSON, and what-if questions."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from typing import TYPE_CHECKING, Any

import pytest

from recommender.commands.main import main
from recommender.kinds.cluster_size.node_groups import plugin_host
from recommender.kinds.cluster_size.node_groups.protocol import ENTRY_POINTS
from tests.recommender.configuration.files import entry, whole
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import MAX, MIN, machines_of, scalable
from tests.recommender.kinds.cluster_size.node_groups.example_provider import ExampleProvider, example

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Json = dict[str, Any]

GROUPS = """clusterSize:
      nodeGroups:
      - {name: a, min: 1, max: 20, price: 0.2, template: {cpu: 4, memory: 16Gi}, selector: {pool: a}}
      - name: b
        max: 5
        price: 0.4
        template: {cpu: 8, memory: 32Gi, taints: ["gpu=yes:NoSchedule"]}
        selector: {pool: b}
      expander: [price, least-waste]"""
LONG_AGO = "2026-01-01T00:00:00Z"


def node(name: str, pool: str, cpu: str) -> Json:
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"pool": pool}, "creationTimestamp": LONG_AGO},
        "spec": {},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def template(cpu: str) -> Json:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}


def pod(name: str, owner: str, cpu: str = "1", on: str = "") -> Json:
    waits = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "shop",
            "name": name,
            "uid": name,
            "labels": {"app": "web", "pod-template-hash": owner.rpartition("-")[2]},
            "creationTimestamp": LONG_AGO,
            "ownerReferences": [reference],
        },
        "spec": template(cpu)["spec"] | ({"nodeName": on} if on else {}),
        "status": {"phase": "Running"} if on else {"phase": "Pending", "conditions": waits},
    }


def workload(kind: str, name: str, replicas: int, cpu: str = "1") -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"namespace": "shop", "name": name, "uid": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template(cpu)},
    }


OBJECTS = [
    node("a0", "a", "4"),
    node("b0", "b", "8"),
    *(pod(f"web-5d4f-{number}", "web-5d4f", on="a0") for number in range(4)),
    *(pod(f"web-5d4f-p{number}", "web-5d4f", "3") for number in range(5)),
    *(pod(f"huge-77-{number}", "huge-77", "64") for number in range(3)),
    workload("Deployment", "web", 9),
    workload("ReplicaSet", "web-5d4f", 9),
    workload("ReplicaSet", "huge-77", 3, "64"),
]


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    (tmp_path / "r.yaml").write_text(whole(entry("workers", kind=GROUPS)))
    (tmp_path / "c.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
    return ["recommend", f"--config={tmp_path / 'r.yaml'}", f"--cluster={tmp_path / 'c.json'}"]


def item(arguments: list[str], capsys: pytest.CaptureFixture[str], *more: str) -> Json:
    """Return the only item of the printed document."""
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "-o", "json", *more])
    assert ended.value.code == 0
    [found] = json.loads(capsys.readouterr().out)["items"]
    return dict(found)


def group(found: Json, name: str) -> Json:
    return next(dict(each) for each in found["node_groups"] if each["name"] == name)


def test_the_document_has_the_documented_keys(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = item(arguments, capsys)

    assert {key: found[key] for key in ("name", "type", "status", "replicas", "targets")} == {
        "name": "workers",
        "type": "clusterSize",
        "status": "ok",
        "replicas": None,
        "targets": [],
    }
    sizes = ("name", "current", "recommended", "after_removals", "min", "max")
    assert [tuple(each[key] for key in sizes) for each in found["node_groups"]] == [
        ("a", 1, 4, 4, 1, 20),
        ("b", 1, 1, 1, 0, 5),
    ]
    assert all(each["reason"] for each in found["node_groups"])
    [step] = found["steps"]
    assert (step["step"], step["group"], step["value"]) == ("round/1", "a", 4)
    assert found["binding"] == "round/1"
    assert [each["pod"] for each in found["unschedulable"]] == [f"shop/huge-77-{number}" for number in range(3)]
    assert found["unschedulable"][0]["groups"]["a"].startswith("Insufficient cpu")
    assert "gpu" in found["unschedulable"][0]["groups"]["b"]
    assert {each["node"] for each in found["kept"]} == {"a0", "b0"}
    assert set(found["kept"][0]) >= {"node", "reason", "pod"}
    assert {"removals", "bound", "advice", "saved_per_hour", "waiting", "left_out"} <= set(found)


def test_a_removable_node_is_listed_without_a_timer(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = item(arguments, capsys, "--assume", "shop/web:4")

    [removal] = found["removals"]
    assert (removal["node"], removal["group"], removal["utilization_ratio"], removal["unneeded_seconds"]) == (
        "b0",
        "b",
        0,
        None,
    )
    assert group(found, "b")["after_removals"] == 0
    assert found["saved_per_hour"] == 0.4


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (("--assume", "shop/web:4"), 1),
        (("--assume", "shop/web:17"), 5),
        (("--assume", "Deployment/shop/web:17"), 5),
        (("--without-node", "a0", "--assume", "shop/web:4"), 1),
    ],
)
def test_a_what_if_question_is_answered(
    arguments: list[str], capsys: pytest.CaptureFixture[str], more: tuple[str, ...], expected: int
) -> None:
    found = item(arguments, capsys, *more)

    assert group(found, "a")["recommended"] == expected
    assert found["message"].startswith("what if: ")


def test_the_message_names_both_assumptions_and_default_parameters(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    dns = "proportional: {configMap: {namespace: dns, name: dns, defaultParams: {linear: {nodesPerReplica: 5}}}}"
    (tmp_path / "r.yaml").write_text(whole(entry("workers", kind=GROUPS), entry("dns", kind=dns)))

    with pytest.raises(SystemExit):
        main([*arguments, "-o", "json", "--without-node=a0"])

    [_, found] = json.loads(capsys.readouterr().out)["items"]
    assert found["message"].startswith("what if: ")
    assert found["message"].endswith("the ConfigMap dns/dns does not exist: these are the default parameters")


def test_an_unschedulable_pod_of_a_removed_node_is_distinguished_from_pending_pods(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    objects = [*OBJECTS, pod("huge-77-9", "huge-77", "64", on="b0")]
    (tmp_path / "c.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    found = item(arguments, capsys, "--without-node=b0")

    sources = {each["pod"]: each["moved_from"] for each in found["unschedulable"]}
    assert sources == {"shop/huge-77-9": "b0", **{f"shop/huge-77-{number}": None for number in range(3)}}
    with pytest.raises(SystemExit):
        main([*arguments, "--without-node=b0"])
    lines = capsys.readouterr().out.splitlines()
    assert "    shop/huge-77-9: from b0 to no node, as NO NODE FOR says" in lines
    assert "    4 pods of shop/huge: needs 64 cpu; the most on a new node is 8 (b)" in lines


OWNED, MACHINES = machines_of("workers", "a0", "a1")
REMOVED = {
    "of a group of Cluster API at its maximum": (
        "clusterSize: {nodeGroups: {clusterAPI: {namespaces: [capi]}}}",
        [scalable(annotations={MIN: "1", MAX: "2"}), OWNED, *MACHINES],
        ["a1"],
        (1, 2),
    ),
    "of a group of Cluster API, all of them": (
        "clusterSize: {nodeGroups: {clusterAPI: {namespaces: [capi]}}}",
        [scalable(annotations={MIN: "0", MAX: "5"}), OWNED, *MACHINES],
        ["a0", "a1"],
        (0, 2),
    ),
    "of a group without a template, all of them": (
        "clusterSize: {nodeGroups: [{name: a, max: 2, selector: {pool: a}}]}",
        [],
        ["a0", "a1"],
        (0, 2),
    ),
}


@pytest.mark.parametrize(("groups", "more", "removed", "sizes"), REMOVED.values(), ids=REMOVED.keys())
def test_a_group_with_removed_nodes_is_smaller_and_can_grow_again(
    groups: str,
    more: list[Json],
    removed: list[str],
    sizes: tuple[int, int],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    agent = pod("agent-a", "agent", "2", on="a0")
    agent["metadata"]["namespace"] = "kube-system"
    agent["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    objects = [
        *(node(f"a{number}", "a", "4") for number in range(2)),
        *(pod(f"web-5d4f-{number}", "web-5d4f", "2", on=f"a{number}") for number in range(2)),
        agent,
        workload("ReplicaSet", "web-5d4f", 2),
        *more,
    ]
    (tmp_path / "r.yaml").write_text(whole(entry("workers", kind=groups)))
    (tmp_path / "c.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    arguments = ["recommend", f"--config={tmp_path / 'r.yaml'}", f"--cluster={tmp_path / 'c.json'}"]

    found = item(arguments, capsys, *(f"--without-node={name}" for name in removed))

    [its] = found["node_groups"]
    assert (its["current"], its["recommended"], found["unschedulable"]) == (*sizes, [])
    assert {each["moved_from"] for each in found["places"]} == set(removed)


@pytest.mark.parametrize("more", [(), ("--without-node=a2",)])
def test_a_pod_is_placed_on_a_node_that_stays(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, more: tuple[str, ...]
) -> None:
    objects = [
        *(node(f"a{number}", "a", "4") for number in range(3)),
        pod("web-5d4f-0", "web-5d4f", "1500m", on="a1"),
        pod("web-5d4f-1", "web-5d4f", "1", on="a2" if more else ""),
        workload("ReplicaSet", "web-5d4f", 2),
    ]
    (tmp_path / "c.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    found = item(arguments, capsys, *more)

    [place] = found["places"]
    going = {each["node"] for each in found["removals"] if each["due"]}
    assert going
    assert place["node"] in {"a0", "a1", "a2"} - going


def test_pods_are_added_from_a_file(arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "more.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [workload("Deployment", "api", 4, "4")]}))

    assert group(item(arguments, capsys, "--add-pods", str(path)), "a")["recommended"] == 8


def test_added_pods_that_state_only_limits_request_their_limits(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "more.json"
    written = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "train"}}
    pods = [written | {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "4"}}}]}}]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))

    more = item(arguments, capsys, "--add-pods", str(path))

    assert group(more, "a")["recommended"] == group(item(arguments, capsys), "a")["recommended"] + 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--assume", "shop/wbe:4"), "there is no workload shop/wbe: did you mean shop/web?"),
        (("--assume", "web:4"), "--assume: 'web:4' is not NAMESPACE/NAME:REPLICAS: write it as shop/web:40"),
        (("--without-node", "a00"), "--without-node a00: there is no such node: did you mean a0?"),
    ],
)
def test_an_invalid_what_if_question_is_wrong_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str], more: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, *more])

    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_the_program_prints_a_table(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "recommender.commands.main", *arguments]
    command[1:3] = ["-c", "import sys; from recommender.commands.main import main; main(sys.argv[1:])"]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert ["workers", "ok", "5", "nodes", "in", "2", "groups", "round/1"] in lines
    assert ["CHANGES"] in lines
    assert ["a", "1", "to", "4", "for", "shop/web-5d4f-p2,", "shop/web-5d4f-p3,", "shop/web-5d4f-p4"] in lines
    assert max(map(len, ended.stdout.splitlines())) <= 80


def test_invalid_objects_do_not_hide_problems_of_the_configuration(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wrong = GROUPS.replace("expander: [price", "expander: [cheapest")
    (tmp_path / "r.yaml").write_text(whole(entry("workers", kind=wrong)))
    broken = node("n1", "a", "4") | {"metadata": {"name": "n1", "labels": {"pool": None}}}
    (tmp_path / "c.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [broken]}))

    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 1
    printed = capsys.readouterr()
    assert (printed.err, "'cheapest' is not an expander" in printed.out) == ("", True)


def talkative(_: Mapping[str, object]) -> ExampleProvider:
    provider = example()
    provider.on_refresh = lambda: sys.stdout.write("refreshing\n")
    return provider


def test_output_of_a_plugin_is_not_part_of_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = EntryPoints((EntryPoint("talkative", f"{__name__}:talkative", ENTRY_POINTS),))
    monkeypatch.setattr(plugin_host, "entry_points", lambda group: entries.select(group=group))
    (tmp_path / "r.yaml").write_text(
        whole(entry("workers", kind="clusterSize: {nodeGroups: {plugin: {name: talkative}}}"))
    )
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
    arguments = ["--config", str(tmp_path / "r.yaml"), "--cluster", str(tmp_path / "cluster.json"), "-o", "json"]
    with pytest.raises(SystemExit):
        main(["recommend", *arguments])
    written = capsys.readouterr()
    assert json.loads(written.out)["items"]
    assert "refreshing" in written.err
