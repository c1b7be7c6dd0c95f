"""`run` with a scripted API server: one leads, one stands by, and the server is down for a while."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from demo.machine.files import replace_file
from tests.recommender.commands.cluster_harness import (
    cluster_server,
    put_nodes,
    put_scaled_object,
    replicas_of,
    running,
)
from tests.recommender.configuration.files import entry, whole
from tests.support.apiserver_kinds import CONFIG_MAPS, DEPLOYMENTS, EVENTS, LEASES
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.apiserver_store import Json
    from tests.support.object_apiserver import ObjectApiServer
    from tests.support.recommenders import Recommender

TARGETS = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: coredns}]"
REPLICAS = (
    'tidewatch_recommended_replicas{recommendation="coredns",target_kind="Deployment",target_name="coredns",'
    'target_namespace="kube-system"}'
)
CALLS = 'tidewatch_scale_calls_total{{recommendation="coredns",result="{}"}}'
READS = {"GET", "list", "watch", "discover"}


def configure(folder: Path, *, elects: bool = True) -> None:
    top = f"pollInterval: 1s\nstate: {folder}/state\nleaderElection: {{enabled: {str(elects).lower()}}}\n"
    (folder / "recommender.yaml").write_text(whole(entry("coredns", TARGETS, "outputs: [metric, scale]"), top=top))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    configure(folder)
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectApiServer]:
    with cluster_server() as server:
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


def outcome_of(recommender: Recommender) -> tuple[str, str]:
    [target] = (recommender.items().get("coredns") or {}).get("targets") or [{}]
    return target.get("action", ""), target.get("owner") or ""


def test_the_leader_scales_and_remembers(leader: Recommender, server: ObjectApiServer) -> None:
    until(lambda: replicas_of(server) == 3)
    until(lambda: leader.items()["coredns"]["replicas"] == 3)
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
        until(lambda: leader.metric(REPLICAS) == "3.0")


def test_leadership_and_values_end_without_the_api_server_and_both_return(
    leader: Recommender, server: ObjectApiServer
) -> None:
    until(lambda: leader.metric(REPLICAS) == "3.0")
    server.stop()
    # The Lease lasts longest: for ten seconds after its last renewal.
    until(lambda: leader.metric("tidewatch_leader") == "0.0", 30)
    until(lambda: leader.metric(REPLICAS) is None)
    until(lambda: not leader.items())
    put_nodes(server, 80)
    server.start()
    until(lambda: replicas_of(server) == 5, 60)
    until(lambda: leader.metric(REPLICAS) == "5.0")


def test_a_dry_run_sends_no_writes(folder: Path) -> None:
    with cluster_server() as server:
        put_nodes(server, 48)
        command = (*flags(server, folder), "--dry-run")
        with running("run", *command, log_path=folder / "dry-run.log") as recommender:
            # An item is listed before its first decision, without a size.
            assert until(lambda: recommender.items().get("coredns", {}).get("replicas"), 30) == 3
            polls = 'tidewatch_recommender_polls_total{result="ok"}'
            until(lambda: float(recommender.metric(polls) or 0) >= 2)
        assert {request.verb for request in server.requests} <= READS
        assert replicas_of(server) == 2


def test_the_target_of_a_paused_scaled_object_is_never_written(folder: Path, tmp_path: Path) -> None:
    with cluster_server() as server:
        put_nodes(server, 48)
        put_scaled_object(server, "dns")
        with running("run", *flags(server, folder), log_path=tmp_path / "run.log") as recommender:
            # The first decision may be made before the first lists have arrived.
            until(lambda: outcome_of(recommender) == ("refused", "ScaledObject kube-system/dns"), 30)
            assert replicas_of(server) == 2
            server.remove("scaledobjects", "kube-system", "dns")
            until(lambda: replicas_of(server) == 3)


def test_a_process_that_starts_with_no_nodes_uses_the_memory_of_its_predecessor(folder: Path, tmp_path: Path) -> None:
    with cluster_server() as server:
        put_nodes(server, 48)
        command = flags(server, folder)
        with running("run", *command, log_path=tmp_path / "before.log"):
            until(lambda: replicas_of(server) == 3, 30)
        put_nodes(server, 0)
        with running("run", *command, log_path=tmp_path / "after.log") as recommender:
            doubt = "the first list since the start was empty, and 48 nodes were known before"
            until(lambda: doubt in str((recommender.items().get("coredns") or {}).get("message")), 30)
            assert recommender.items()["coredns"]["status"] in {"held", "stale"}
        assert replicas_of(server) == 3


def test_scale_calls_that_a_removed_entry_leaves_are_no_longer_counted(tmp_path: Path) -> None:
    top, file = f"pollInterval: 1s\nstate: {tmp_path}/state\n", tmp_path / "recommender.yaml"
    kept, removed = entry("kept", "outputs: [metric]"), entry("coredns", TARGETS, "outputs: [scale]")
    file.write_text(whole(kept, removed, top=top))
    with cluster_server() as server:
        server.objects.deny("update", "deployments/scale")
        put_nodes(server, 48)
        with running("run", *flags(server, tmp_path), log_path=tmp_path / "run.log") as recommender:
            until(lambda: float(recommender.metric(CALLS.format("error")) or 0) > 0, 30)
            replace_file(file, whole(kept, top=top))
            until(lambda: list(recommender.items()) == ["kept"])
            until(lambda: recommender.metric(CALLS.format("superseded")) is None)


@pytest.mark.parametrize("elects", [True, False], ids=["with a Lease", "alone"])
def test_a_size_of_this_field_manager_is_anothers_only_with_a_lease(
    tmp_path: Path,
    elects: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Without a Lease, it may be that of the pod that this one replaces."""

    def write(one: Json) -> None:
        one["spec"]["replicas"] = 7
        one["metadata"]["managedFields"] = [{"manager": "tidewatch", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]

    configure(tmp_path, elects=elects)
    with cluster_server() as server:
        put_nodes(server, 48)
        with running("run", *flags(server, tmp_path), log_path=tmp_path / "run.log") as recommender:
            until(lambda: replicas_of(server) == 3, 30)
            until(lambda: recommender.metric(CALLS.format("ok")) == "1.0")
            server.objects.change(DEPLOYMENTS, "kube-system", "coredns", write)
            if elects:
                until(lambda: outcome_of(recommender) == ("refused", "another recommender"), 30)
                assert replicas_of(server) == 7
            else:
                until(lambda: replicas_of(server) == 3, 30)
