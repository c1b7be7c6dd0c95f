"""Both doctors in one report, and what-if with the flags of `recommend`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from recommender.kubectl.main import main
from tests.recommender.commands.cluster_harness import cluster_server, put_nodes
from tests.recommender.configuration.files import entry, whole

if TYPE_CHECKING:
    from pathlib import Path

    from tests.recommender.kubectl.conftest import Plugin

TARGETS = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: coredns}]"


def configuration(folder: Path) -> Path:
    path = folder / "recommender.yaml"
    path.write_text(whole(entry("coredns", TARGETS), top="leaderElection: {namespace: monitoring}\n"))
    return path


def test_both_doctors_report_under_their_own_names(plugin: Plugin, tmp_path: Path) -> None:
    answered = plugin.run("doctor", "-o", "json", f"--config={configuration(tmp_path)}")
    names = [check["name"].partition("/")[0] for check in answered.document["checks"]]
    assert list(dict.fromkeys(names)) == ["adapter", "recommender"]
    assert answered.status == (1 if answered.document["errors"] else 0)


def test_without_a_configuration_only_the_adapter_is_checked(plugin: Plugin) -> None:
    checks = plugin.run("doctor", "-o", "json").document["checks"]
    assert {check["name"].partition("/")[0] for check in checks} == {"adapter"}


def test_both_kinds_of_objects_are_checked_if_they_are_enabled(plugin: Plugin, tmp_path: Path) -> None:
    path = configuration(tmp_path)
    path.write_text(path.read_text() + "recommendationObjects: {enabled: true}\n")
    checks = plugin.run("doctor", "-o", "json", "--metric-rules", f"--config={path}").document["checks"]
    found = {check["name"]: check for check in checks if "tidewatch.io" in check["name"]}
    assert found["adapter/definition/metricrules.tidewatch.io"]["status"] == "error"
    assert found["recommender/definition/recommendations.tidewatch.io"]["status"] == "error"
    assert "recommender/permission/list+watch recommendations.tidewatch.io" in found
    assert "recommender/permission/patch recommendations.tidewatch.io/status" in found


def test_what_if_calculates_with_the_live_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with cluster_server() as server:
        put_nodes(server, 3)
        kubeconfig = server.kubeconfig(tmp_path / "config")
        with pytest.raises(SystemExit) as ended:
            main(["what-if", f"--config={configuration(tmp_path)}", f"--kubeconfig={kubeconfig}", "-o", "json"])
    assert ended.value.code == 0
    assert [item["name"] for item in json.loads(capsys.readouterr().out)["items"]] == ["coredns"]


def test_what_if_does_not_accept_files_instead_of_the_cluster(plugin: Plugin, tmp_path: Path) -> None:
    answered = plugin.run("what-if", f"--config={configuration(tmp_path)}", "--cluster=cluster.json")
    assert answered.status == 2
    assert "unknown flag --cluster" in answered.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["what-if", "--config=none.yaml"], "none.yaml: cannot read the file"),
        (["what-if", "--config=."], ".: this is a folder"),
        (["what-if", "--config=recommender.yaml", "--assume=shop/web:40"], "--assume, --without-node and --add-pods "),
        (["doctor", "--config=none.yaml"], "none.yaml: cannot read the file"),
    ],
)
def test_messages_name_the_program_that_was_called(
    plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    configuration(tmp_path)
    monkeypatch.chdir(tmp_path)
    answered = plugin.run(*words)
    assert answered.status == 2
    assert answered.err.startswith(f"kubectl-tidewatch: {message}")


def put_down(plugin: Plugin) -> None:
    plugin.kubeconfig.write_text(plugin.kubeconfig.read_text().replace(plugin.server.url, "https://127.0.0.1:9"))


@pytest.mark.parametrize("form", [(), ("-o", "table")], ids=["as it is", "by its other name"])
def test_a_cluster_that_is_down_is_reported_once_in_a_short_report(plugin: Plugin, form: tuple[str, ...]) -> None:
    put_down(plugin)
    answered = plugin.run("doctor", *form)
    assert answered.status == 1
    lines = answered.out.splitlines()
    assert lines[0].startswith("error: adapter/kube-apiserver: it does not answer: ")
    assert len(lines) <= 10, answered.out


def test_why_names_the_fix_if_the_cluster_is_down(plugin: Plugin) -> None:
    put_down(plugin)
    answered = plugin.why("hpa/web")
    assert (answered.status, answered.out) == (2, "")
    assert answered.err.startswith("kubectl-tidewatch: kube-apiserver: GET ")
    assert answered.err.endswith(
        "check the address and the CA in the kubeconfig, and whether this machine reaches it\n"
    )
