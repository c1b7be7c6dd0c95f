"""cluster-proportional-autoscaler's command line with that program's rights, as a user starts it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.recommender.commands.cluster_world import NAMESPACE, cluster_server, put_nodes, replicas_of, running
from tests.support.apiserver_objects import CONFIG_MAPS
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.object_apiserver import ObjectApiServer
    from tests.support.recommenders import Recommender

DEFAULTS = {"linear": {"coresPerReplica": 256, "nodesPerReplica": 2}}
GLOG = ("--logtostderr=true", "--v=2", "--stderrthreshold=0", "--alsologtostderr", "--log_dir=/tmp", "--vmodule=a=1")
LAST_POLL = "/last-poll"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("proportional")


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectApiServer]:
    """One that grants no more than the ClusterRole and the Role of cluster-proportional-autoscaler."""
    with cluster_server() as server:
        put_nodes(server, 8)
        server.forbid("list", "horizontalpodautoscalers")
        for verb, plural in (("*", "leases"), ("*", "events"), ("get", "deployments"), ("update", "configmaps")):
            server.objects.deny(verb, plural)
        yield server


def flags(server: ObjectApiServer, folder: Path, config_map: str) -> tuple[str, ...]:
    return (
        f"--namespace={NAMESPACE}",
        f"--configmap={config_map}",
        "--target=deployment/coredns",
        "--poll-period-seconds=1",
        f"--kubeconfig={server.kubeconfig(folder / 'config')}",
    )


@pytest.fixture(scope="module")
def proportional(server: ObjectApiServer, folder: Path) -> Iterator[Recommender]:
    more = (f"--default-params={json.dumps(DEFAULTS)}", *GLOG)
    with running(
        "proportional", *flags(server, folder, "dns"), *more, log_path=folder / "proportional.log"
    ) as recommender:
        until(recommender.items, 30)
        yield recommender


def parameters(server: ObjectApiServer, text: str) -> None:
    server.objects.put(CONFIG_MAPS, NAMESPACE, "dns", {"kind": "ConfigMap", "data": {"linear": text}})


def test_the_config_map_is_created_from_the_default_parameters(
    proportional: Recommender, server: ObjectApiServer
) -> None:
    until(lambda: server.objects.find(CONFIG_MAPS, NAMESPACE, "dns"))
    created = server.objects.get_without_rights(CONFIG_MAPS, NAMESPACE, "dns")
    assert {mode: json.loads(text) for mode, text in created["data"].items()} == DEFAULTS
    assert proportional.items()["dns"]["binding"] == "linear/nodes"


def test_the_target_follows_the_nodes(proportional: Recommender, server: ObjectApiServer) -> None:
    until(lambda: replicas_of(server) == 4)
    put_nodes(server, 12)
    until(lambda: replicas_of(server) == 6)
    assert until(lambda: proportional.get(LAST_POLL, plain=True)[:2] == (200, "ok\n"))
    assert proportional.get("/healthz", plain=True)[0] == 200


def test_a_broken_config_map_keeps_the_last_good_parameters(proportional: Recommender, server: ObjectApiServer) -> None:
    parameters(server, '{"nodesPerReplica": ')
    until(lambda: "this is not JSON" in proportional.items()["dns"]["message"])
    put_nodes(server, 16)
    until(lambda: replicas_of(server) == 8)
    parameters(server, '{"nodesPerReplica": 4}')
    until(lambda: replicas_of(server) == 4)
    assert "JSON" in proportional.log


def test_a_scale_call_that_fails_is_shown_by_last_poll(proportional: Recommender, server: ObjectApiServer) -> None:
    server.objects.deny("update", "deployments/scale")
    put_nodes(server, 20)
    until(lambda: proportional.get(LAST_POLL, plain=True)[0] == 500)
    assert "deployments" in proportional.get(LAST_POLL, plain=True)[1]
    server.objects.allow("update", "deployments/scale")
    until(lambda: replicas_of(server) == 5, 30)
    until(lambda: proportional.get(LAST_POLL, plain=True)[0] == 200)


def test_nothing_is_written_but_the_config_map_and_scales(proportional: Recommender, server: ObjectApiServer) -> None:
    assert proportional.items()
    written = {
        (asked.verb, asked.path) for asked in server.requests if asked.verb in {"POST", "PUT", "PATCH", "DELETE"}
    }
    root = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/coredns/scale"
    events = ("POST", f"/api/v1/namespaces/{NAMESPACE}/events")
    assert written - {events} == {("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps"), ("PUT", root)}


def test_it_gives_up_with_status_1_after_so_many_failures(server: ObjectApiServer, folder: Path) -> None:
    more = ("--max-sync-failures=2",)
    with running(
        "proportional", *flags(server, folder, "missing"), *more, log_path=folder / "failing.log"
    ) as recommender:
        assert recommender.process.wait(30) == 1
        assert "2 consecutive polls have failed" in recommender.log
