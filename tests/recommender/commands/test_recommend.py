"""`recommend`: one configuration, one cluster in a file, and what is printed for them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from recommender.commands.main import main
from tests.recommender.configuration.files import HEAD, entry, whole
from tests.support.apiserver_kinds import CONFIG_MAPS, DEPLOYMENTS
from tests.support.cluster_objects import Json, autoscaler_object, metadata_of, node_object
from tests.support.object_apiserver import ObjectApiServer
from tests.support.recommenders import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LINEAR = "proportional: {linear: {nodesPerReplica: 16, coresPerReplica: 256, min: 2, max: 50}}"
TARGETS = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: coredns}]"
CONFIG_MAP = "proportional: {configMap: {namespace: kube-system, name: dns-autoscaler%s}}"
COREDNS = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "coredns"}
HEAVY = {"numpy", "pandas", "scipy", "statsmodels", "sklearn"}
OF_SIZES = {"decide", "node_groups.discover", "what_if.apply", "predicates.filters"}
"""Modules that only the calculation of cluster sizes needs."""


def deployment(replicas: int = 3) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata_of("coredns", "kube-system"),
        "spec": {"replicas": replicas},
        "status": {"replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas},
    }


def parameters(**data: str) -> Json:
    metadata = metadata_of("dns-autoscaler", "kube-system") | {"resourceVersion": "7"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def nodes(number: int, cpu: str = "16") -> list[Json]:
    return [node_object(f"n{place}", cpu) for place in range(number)]


class Harness:
    """A folder with a configuration and a cluster."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "recommender.yaml"
        self.cluster = folder / "cluster.json"

    def write(self, configuration: str, objects: Sequence[Json]) -> list[str]:
        """Write a configuration and objects, and return the arguments that name both."""
        self.config.write_text(configuration)
        self.cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
        return ["recommend", f"--config={self.config}", f"--cluster={self.cluster}"]


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


def run(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    printed = capsys.readouterr()
    assert isinstance(left.value.code, int)
    return left.value.code, printed.out, printed.err


def items(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    _, out, _ = run([*arguments, "-o", "json"], capsys)
    found: list[dict[str, Any]] = json.loads(out)["items"]
    return found


def as_process(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run the command; it prints on stderr which modules it has loaded."""
    program = (
        "import sys\nfrom recommender.commands.main import main\n"
        "try:\n    main(sys.argv[1:])\nfinally:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60)  # noqa: PLW1510 - its exit status is looked at


def test_the_installed_program_ends_without_a_word_on_stderr(harness: Harness) -> None:
    arguments = harness.write(whole(entry("coredns", TARGETS, kind=LINEAR)), [*nodes(176), deployment()])
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "coredns" in done.stdout


def test_a_process_prints_a_table_without_loading_heavy_modules(harness: Harness) -> None:
    arguments = harness.write(whole(entry("coredns", TARGETS, kind=LINEAR)), [*nodes(176), deployment()])
    done = as_process(arguments)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[1].split() == ["coredns", "ok", "11", "replicas", "linear/nodes"]
    assert "  linear/nodes  11     ceil(176 / 16)" in lines
    assert "\x1b" not in done.stdout
    loaded = set(done.stderr.split())
    assert not HEAVY & loaded
    assert not {f"recommender.kinds.cluster_size.{name}" for name in OF_SIZES} & loaded


def test_a_process_prints_json(harness: Harness) -> None:
    configuration = whole(entry("coredns", TARGETS, "outputs: [metric, scale]", kind=LINEAR))
    done = as_process([*harness.write(configuration, [*nodes(176), deployment()]), "-o", "json"])
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert (document["apiVersion"], document["kind"]) == ("tidewatch.io/v1alpha1", "RecommendationList")
    [item] = document["items"]
    assert item["time"] == document["time"]
    assert {key: item[key] for key in ("name", "type", "status", "replicas", "binding")} == {
        "name": "coredns",
        "type": "proportional",
        "status": "ok",
        "replicas": 11,
        "binding": "linear/nodes",
    }
    assert item["inputs"] == {"nodes": 176, "schedulable_nodes": 176, "cores": 2816, "schedulable_cores": 2816}
    assert [step["step"] for step in item["steps"]] == ["linear/nodes", "linear/cores", "largest"]
    assert item["targets"] == [
        COREDNS
        | {"namespace": "kube-system", "current_replicas": 3, "recommended_replicas": 11}
        | {"action": "scale", "owner": None, "message": None}
    ]


def test_table_is_another_name_for_text(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = harness.write(whole(entry("coredns", kind=LINEAR)), nodes(3))
    assert run([*arguments, "-o", "table"], capsys) == run([*arguments, "-o", "text"], capsys)


def test_a_target_missing_from_the_files_has_no_present_size(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = harness.write(whole(entry("coredns", TARGETS, "outputs: [metric, scale]", kind=LINEAR)), nodes(3))
    [item] = items(arguments, capsys)
    assert (item["status"], item["replicas"]) == ("ok", 2)
    assert item["targets"][0]["current_replicas"] is None


def test_an_hpa_in_the_files_refuses_the_scale_call(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    hpa = autoscaler_object("dns", "kube-system", COREDNS)
    configuration = whole(entry("coredns", TARGETS, "outputs: [scale]", kind=LINEAR))
    [item] = items(harness.write(configuration, [*nodes(176), deployment(), hpa]), capsys)
    assert (item["status"], item["replicas"]) == ("ok", 11)
    assert (item["targets"][0]["action"], item["targets"][0]["owner"]) == (
        "refused",
        "HorizontalPodAutoscaler kube-system/dns",
    )


def test_a_refused_entry_is_an_error_among_the_others(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    configuration = whole(entry("broken", "maxStep: x"), entry("coredns", kind=LINEAR))
    arguments = harness.write(configuration, nodes(3))
    code, out, _ = run([*arguments, "-o", "json"], capsys)
    assert code == 1
    broken, good = json.loads(out)["items"]
    assert (broken["name"], broken["status"], good["status"]) == ("broken", "error", "ok")
    assert broken["message"].startswith(f"{harness.config}:6: 'x' is not a number of replicas or a percentage")


def test_only_the_named_recommendations_are_shown(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    configuration = whole(entry("broken", "maxStep: x"), entry("a", kind=LINEAR), entry("b", kind=LINEAR))
    arguments = [*harness.write(configuration, nodes(3)), "--recommendation=b"]
    assert [item["name"] for item in items(arguments, capsys)] == ["b"]
    assert run(arguments, capsys)[0] == 0


def test_a_file_without_nodes_says_what_to_add(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = harness.write(whole(entry("a", kind=LINEAR)), [deployment()])
    [item] = items(arguments, capsys)
    assert (item["status"], item["replicas"]) == ("stale", None)
    assert "kubectl get nodes -o json" in item["message"]
    assert run(arguments, capsys)[0] == 1


@pytest.mark.parametrize(
    ("objects", "defaults", "expected"),
    [
        ([parameters(linear='{"nodesPerReplica": 2}')], "", ("ok", 5)),
        ([parameters(linear='{"nodesPerReplica": 2}', ladder="{}")], "", ("error", None)),
        ([], "", ("error", None)),
        ([], ", defaultParams: {linear: {nodesPerReplica: 5}}", ("ok", 2)),
    ],
    ids=["there", "broken", "missing", "default"],
)
def test_parameters_come_from_the_config_map_in_the_files(
    objects: list[Json],
    defaults: str,
    expected: tuple[str, int | None],
    harness: Harness,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = harness.write(whole(entry("dns", kind=CONFIG_MAP % defaults)), [*nodes(10), *objects])
    [item] = items(arguments, capsys)
    assert (item["status"], item["replicas"]) == expected


def test_default_parameters_are_reported_as_defaults(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    kind = CONFIG_MAP % ", defaultParams: {linear: {nodesPerReplica: 5}}"
    [item] = items(harness.write(whole(entry("dns", kind=kind)), nodes(10)), capsys)
    assert item["message"] == (
        "the ConfigMap kube-system/dns-autoscaler does not exist: these are the default parameters"
    )


@pytest.mark.parametrize(
    ("configuration", "arguments", "message"),
    [
        ("", (), ":1: the file is empty: begin it with apiVersion: "),
        (
            f"{HEAD}polInterval: 1s\nrecommendations: []\n",
            (),
            ":3: the key 'polInterval' is not known: did you mean 'pollInterval'?",
        ),
        (whole(), ("--recommendation=a",), "--recommendation: there is no recommendation 'a': there are none"),
        (whole(entry("abc")), ("--recommendation=abd",), "there is no recommendation 'abd': did you mean abc?"),
        (whole(), ("--cluster=/nowhere.json",), "/nowhere.json: the file cannot be read: No such file or directory"),
        (whole(), ("--config=/nowhere.yaml",), "/nowhere.yaml"),
        (whole(), ("--config=/",), "/: this is a folder: name the configuration file in it"),
        (whole(), ("--config=",), "--config is empty: name the configuration file"),
        (whole(), ("--colour",), "unknown flag --colour"),
    ],
    ids=range(9),
)
def test_an_unreadable_input_is_reported_in_one_line(
    configuration: str, arguments: tuple[str, ...], message: str, harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run([*harness.write(configuration, []), *arguments], capsys)
    assert (code, out) == (2, "")
    assert err.startswith("tidewatch-recommender: ")
    assert err.count("\n") == 1
    assert message in err


def test_each_problem_of_a_refused_file_has_a_line(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(harness.write(whole(top="polInterval: 1s\nstaleAfter: x\n"), []), capsys)
    assert [line.split(":")[2] for line in err.splitlines()] == ["3", "4"]


def test_a_configuration_that_is_not_text_is_refused(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = harness.write("", [])
    harness.config.write_bytes(b"\xff\xfe")
    code, _, err = run(arguments, capsys)
    assert (code, err.count("\n")) == (2, 1)


def test_no_cluster_is_needed_without_recommendations(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    config = harness.write(whole(), [])[1]
    assert run(["recommend", config], capsys) == (0, "There are no recommendations.\n", "")


def test_a_live_cluster_is_read_once(
    harness: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    configuration = whole(
        entry("a", TARGETS, kind=LINEAR),
        entry("b", kind=CONFIG_MAP % ""),
        entry("c", kind="proportional: {drivers: {services: {perReplica: 2}}}"),
    )
    config = harness.write(configuration, [])[1]
    with ObjectApiServer() as server:
        for node in nodes(40):
            resource = next(one for one in server.resources if one.plural == "nodes")
            rest = {key: node[key] for key in ("spec", "status")}
            server.store.put(resource, "", node["metadata"]["name"], {}, rest)
        for name in ("x", "y", "z"):
            server.put("services", "shop", name, {})
        server.objects.put(DEPLOYMENTS, "kube-system", "coredns", deployment())
        server.objects.put(CONFIG_MAPS, "kube-system", "dns-autoscaler", parameters(linear='{"nodesPerReplica": 4}'))
        found = items(["recommend", config, f"--kubeconfig={server.kubeconfig(tmp_path / 'kubeconfig')}"], capsys)
        verbs = {request.verb for request in server.requests}
    assert [(item["status"], item["replicas"], item["message"]) for item in found] == [
        ("ok", 3, "linear/nodes: ceil(40 / 16)"),
        ("ok", 10, "linear/nodes: ceil(40 / 4)"),
        ("ok", 2, found[2]["message"]),
    ]
    assert not verbs & {"create", "update", "patch", "delete", "POST", "PUT", "PATCH", "DELETE"}
    assert found[0]["targets"][0]["current_replicas"] == 3


def test_the_cluster_flag_is_suggested_if_the_cluster_is_unreachable(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    config = harness.write(whole(entry("a", kind=LINEAR)), [])[1]
    code, _, err = run(["recommend", config, "--kubeconfig=/nowhere"], capsys)
    assert code == 2
    assert "give --cluster FILE to do without a cluster" in err
