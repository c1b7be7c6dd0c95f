"""`run` with a folder of objects, as a user starts it: page, API, metrics, health, reload, end."""

from __future__ import annotations

import json
import os
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo.machine.files import replace_file
from tests.recommender.configuration.files import entry, whole
from tests.support.cluster_objects import metadata_of, node_object, pod_object
from tests.support.recommenders import Recommender, started
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGETS = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: coredns}]"
HEAVY = ("numpy", "pandas", "scipy", "statsmodels", "sklearn")


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with a configuration and the objects of a cluster."""

    root: Path

    @property
    def configuration(self) -> Path:
        return self.root / "recommender.yaml"

    @property
    def objects(self) -> Path:
        return self.root / "objects"

    def write_configuration(self, *entries: str) -> None:
        replace_file(self.configuration, whole(*entries, top=f"pollInterval: 1s\nstate: {self.root}/state\n"))

    def write_nodes(self, number: int) -> None:
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata_of("coredns", "kube-system"),
            "spec": {"replicas": 2},
        }
        items = [*(node_object(f"n{place}") for place in range(number)), deployment]
        replace_file(self.objects / "all.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    found = Folder(tmp_path_factory.mktemp("run"))
    found.objects.mkdir()
    found.write_nodes(40)
    found.write_configuration(entry("coredns", TARGETS, "outputs: [metric]"))
    return found


@pytest.fixture(scope="module")
def recommender(folder: Folder) -> Iterator[Recommender]:
    found = started(
        folder.root / "recommender.log",
        "run",
        f"--config={folder.configuration}",
        f"--objects={folder.objects}",
        "--allowed-hosts=page.example.com",
    )
    with found.process:
        until(found.items, 20)
        yield found


REPLICAS = (
    'tidewatch_recommended_replicas{recommendation="coredns",target_kind="Deployment",target_name="coredns",'
    'target_namespace="kube-system"}'
)


def test_the_api_shows_each_step(recommender: Recommender) -> None:
    item = recommender.items()["coredns"]
    assert item["replicas"] == 3
    assert item["binding"] == "linear/nodes"
    assert item["steps"][0] == {"step": "linear/nodes", "value": 3, "detail": "ceil(40 / 16)"}
    assert item["targets"][0]["current_replicas"] == 2
    assert item["targets"][0]["action"] == "metric"


def test_the_recommendation_is_a_metric(recommender: Recommender) -> None:
    until(lambda: recommender.metric(REPLICAS) == "3.0")
    assert recommender.metric("tidewatch_leader") == "1.0"
    assert recommender.metric("tidewatch_recommender_poll_interval_seconds") == "1.0"
    assert recommender.metric('tidewatch_recommendation_status{recommendation="coredns",status="ok"}') == "1.0"


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz", "/metrics"])
def test_health_and_metrics_are_on_the_plain_port(recommender: Recommender, path: str) -> None:
    assert recommender.get(path, plain=True)[0] == 200


def test_the_page_loads_nothing_from_elsewhere_and_may_run_no_scripts(recommender: Recommender) -> None:
    status, text, headers = recommender.get("/")
    assert status == 200
    assert "<strong>3</strong> replicas" in text
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self'")
    assert recommender.get("/style.css")[2]["Content-Type"] == "text/css; charset=utf-8"


def test_an_unknown_path_lists_the_known_paths(recommender: Recommender) -> None:
    status, text, _ = recommender.get("/metrics")
    assert status == 404
    assert "/api/v1/recommendations" in text


@pytest.mark.parametrize(
    ("host", "status"), [("localhost", 200), ("127.0.0.1:1", 200), ("page.example.com", 200), ("evil.example", 421)]
)
@pytest.mark.parametrize("path", ["/", "/api/v1/recommendations"])
def test_the_page_answers_only_to_allowed_hosts(recommender: Recommender, path: str, host: str, status: int) -> None:
    connection = HTTPConnection(recommender.address(), timeout=20)
    with closing(connection):
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        text = answer.read().decode()
    assert answer.status == status
    assert ("add the name to --allowed-hosts or listen.allowedHosts" in text) is (status == 421)


def test_a_fifo_instead_of_a_memory_does_not_block_other_recommendations(
    recommender: Recommender, folder: Folder
) -> None:
    os.mkfifo(folder.root / "state" / "tidewatch-recommender-blocked.json")
    others = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: other}]"
    folder.write_configuration(
        entry("blocked", others, "outputs: [metric]"), entry("coredns", TARGETS, "outputs: [metric]")
    )
    until(lambda: "it is not a regular file: repair or remove it" in recommender.log, 20)
    folder.write_nodes(70)
    until(lambda: recommender.items()["coredns"]["replicas"] == 5, 20)
    folder.write_configuration(entry("coredns", TARGETS, "outputs: [metric]"))
    folder.write_nodes(40)
    until(lambda: recommender.items()["coredns"]["replicas"] == 3, 20)


def test_changed_objects_change_the_value(recommender: Recommender, folder: Folder) -> None:
    folder.write_nodes(80)
    until(lambda: recommender.items()["coredns"]["replicas"] == 5)
    folder.write_nodes(40)
    until(lambda: recommender.items()["coredns"]["replicas"] == 3)


def test_only_a_broken_entry_is_refused_and_its_last_good_version_stays(
    recommender: Recommender, folder: Folder
) -> None:
    folder.write_configuration(
        entry("coredns", TARGETS, kind="proportional: {linaer: {nodesPerReplica: 16}}"),
        entry("other", TARGETS, kind="proportional: {linear: {nodesPerReplica: 8}}"),
    )
    until(lambda: "other" in recommender.items())
    items = recommender.items()
    assert items["other"]["replicas"] == 5
    assert items["coredns"]["replicas"] == 3
    assert "linaer" in items["coredns"]["message"]
    until(lambda: recommender.metric("tidewatch_recommender_config_last_reload_successful") == "0.0")

    folder.write_configuration(entry("coredns", TARGETS))
    until(lambda: "other" not in recommender.items())
    until(lambda: recommender.metric("tidewatch_recommender_config_last_reload_successful") == "1.0")


def test_the_counter_of_scale_calls_starts_at_0_and_ends_with_its_entry(
    recommender: Recommender, folder: Folder
) -> None:
    series = 'tidewatch_scale_calls_total{recommendation="scaled",result="ok"}'
    until(lambda: recommender.metric(series) is None)
    folder.write_configuration(entry("coredns", TARGETS), entry("scaled", TARGETS, "outputs: [scale]"))
    assert until(lambda: recommender.metric(series)) == "0.0"
    folder.write_configuration(entry("coredns", TARGETS))
    until(lambda: recommender.metric(series) is None)
    until(lambda: "scaled" not in recommender.items())


def test_an_invalid_configuration_file_changes_nothing(recommender: Recommender, folder: Folder) -> None:
    folder.configuration.write_text("recommendations: [")
    until(lambda: recommender.metric('tidewatch_recommender_config_reloads_total{result="failure"}') == "1.0")
    assert recommender.items()["coredns"]["replicas"] == 3
    folder.write_configuration(entry("coredns", TARGETS))
    until(lambda: recommender.metric("tidewatch_recommender_config_last_reload_successful") == "1.0")


def test_objects_keep_their_last_state_if_a_file_cannot_be_read(recommender: Recommender, folder: Folder) -> None:
    (folder.objects / "all.json").write_text("{")
    until(lambda: "all.json" in recommender.log)
    assert recommender.items()["coredns"]["replicas"] == 3
    folder.write_nodes(40)


def test_a_cluster_size_added_by_a_reload_reads_more_kinds_of_objects(recommender: Recommender, folder: Folder) -> None:
    groups = "clusterSize: {nodeGroups: [{name: a, max: 50, selector: '!gpu'}]}"
    replace_file(folder.objects / "pods.json", json.dumps(pod_object("web", node="n0")))
    folder.write_configuration(entry("coredns", TARGETS), entry("workers", kind=groups))
    until(lambda: recommender.items().get("workers", {}).get("status") == "ok")
    item = recommender.items()["workers"]
    assert (item["node_groups"][0]["current"], item["inputs"]["pods"]) == (40, 1)
    series = 'tidewatch_node_group_nodes{node_group="a",recommendation="workers"}'
    until(lambda: recommender.metric(series) == "40.0")
    assert "Node groups" in recommender.get("/")[1]
    folder.write_configuration(entry("coredns", TARGETS))
    until(lambda: "workers" not in recommender.items())


def test_no_scientific_package_is_loaded(recommender: Recommender) -> None:
    maps = "".join(path.read_text() for path in Path("/proc").glob(f"{recommender.process.pid}/maps"))
    children = Path(f"/proc/{recommender.process.pid}/task/{recommender.process.pid}/children").read_text().split()
    maps += "".join(Path(f"/proc/{child}/maps").read_text() for child in children)
    assert not [name for name in HEAVY if f"/{name}/" in maps]


def test_the_process_stops_cleanly_and_leaves_its_memory_and_history(folder: Folder, recommender: Recommender) -> None:
    assert recommender.process.stop(20) == 0
    assert (folder.root / "state" / "tidewatch-recommender-coredns.json").exists()
    assert (folder.root / "state" / "history.sqlite").exists()
