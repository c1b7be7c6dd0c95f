"""`run` against a scripted API server: one leads, one stands by, and the server goes away for a while."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.recommender.commands.cluster_world import cluster_server, put_nodes, replicas_of
from tests.recommender.commands.process import running
from tests.recommender.configuration.files import entry, whole
from tests.support.apiserver_objects import CONFIG_MAPS, DEPLOYMENTS, EVENTS, LEASES
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.recommender.commands.process import Recommender
    from tests.support.object_apiserver import ObjectApiServer

TARGETS = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: coredns}]"
REPLICAS = (
    'tidewatch_recommended_replicas{recommendation="coredns",target_kind="Deployment",target_name="coredns",'
    'target_namespace="kube-system"}'
)
STALE = 'tidewatch_recommendation_status{recommendation="coredns",status="stale"}'
READS = {"GET", "list", "watch", "discover"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    top = f"pollInterval: 1s\nstaleAfter: 3s\nstate: {folder}/state\n"
    (folder / "recommender.yaml").write_text(whole(entry("coredns", TARGETS, "outputs: [metric, scale]"), top=top))
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectApiServer]:
    with cluster_server() as server:
        # Otherwise a quiet watch is heard once a minute, and looks older than this `staleAfter`.
        server.bookmark_seconds = 0.3
        put_nodes(server, 48)
        yield server


def flags(server: ObjectApiServer, folder: Path) -> tuple[str, ...]:
    return f"--config={folder}/recommender.yaml", f"--kubeconfig={server.kubeconfig(folder / 'config')}"


@pytest.fixture(scope="module")
def leader(server: ObjectApiServer, folder: Path) -> Iterator[Recommender]:
    with running("run", *flags(server, folder), log_path=folder / "leader.log") as recommender:
        until(recommender.items, 30)
        yield recommender


def holder(server: ObjectApiServer) -> str:
    lease = server.objects.find(LEASES, "monitoring", "tidewatch-recommender")
    return str(lease["spec"]["holderIdentity"]) if lease else ""


def test_the_leader_scales_and_remembers(leader: Recommender, server: ObjectApiServer) -> None:
    until(lambda: replicas_of(server) == 3)
    assert leader.items()["coredns"]["replicas"] == 3
    assert server.objects.find(CONFIG_MAPS, "monitoring", "tidewatch-recommender-coredns")
    assert until(lambda: server.objects.listed(EVENTS, "kube-system"))
    assert leader.metric("tidewatch_leader") == "1.0"


def test_a_standby_names_the_leader_and_has_no_recommendations(
    leader: Recommender, server: ObjectApiServer, folder: Path
) -> None:
    with running("run", *flags(server, folder), log_path=folder / "standby.log") as standby:
        until(lambda: holder(server) in standby.get("/")[1], 30)
        status, text, _ = standby.get("/api/v1/recommendations")
        assert (status, json.loads(text)["leader"]) == (503, holder(server))
        assert standby.metric("tidewatch_leader") == "0.0"
        assert standby.metric(REPLICAS) is None
        assert leader.metric(REPLICAS) == "3.0"


def test_without_the_api_server_the_value_ends_and_nothing_is_scaled_until_it_is_back(
    leader: Recommender, server: ObjectApiServer
) -> None:
    until(lambda: leader.metric(REPLICAS) == "3.0")
    server.stop()
    until(lambda: leader.metric(STALE) == "1.0", 20)
    assert leader.metric(REPLICAS) is None
    assert leader.items()["coredns"]["status"] == "stale"
    # A decision on the 48 nodes from before would write 3 here first.
    server.objects.change(DEPLOYMENTS, "kube-system", "coredns", lambda one: one["spec"].update(replicas=9))
    put_nodes(server, 80)
    asked = len(server.requests)
    server.start()
    until(lambda: replicas_of(server) == 5, 30)
    writes = [each for each in server.requests[asked:] if each.path.endswith("/scale") and each.verb not in READS]
    assert len(writes) == 1
    assert until(lambda: leader.metric(REPLICAS)) == "5.0"


def test_a_dry_run_sends_no_write_of_any_kind(folder: Path) -> None:
    with cluster_server() as server:
        put_nodes(server, 48)
        command = (*flags(server, folder), "--dry-run")
        with running("run", *command, log_path=folder / "dry-run.log") as recommender:
            assert until(recommender.items, 30)["coredns"]["replicas"] == 3
            polls = 'tidewatch_recommender_polls_total{result="ok"}'
            until(lambda: float(recommender.metric(polls) or 0) >= 2)
        assert {asked.verb for asked in server.requests} <= READS
        assert replicas_of(server) == 2
