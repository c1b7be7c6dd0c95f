"""cluster-proportional-autoscaler's command line with that program's rights, as a user starts it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo.machine.processes import start
from tests.recommender.commands.cluster_harness import NAMESPACE, cluster_server, put_nodes, replicas_of, running
from tests.support.apiserver_kinds import CONFIG_MAPS
from tests.support.loaded_modules import LoadedModules
from tests.support.recommenders import PROGRAM, Recommender
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.object_apiserver import ObjectApiServer

DEFAULTS = {"linear": {"coresPerReplica": 256, "nodesPerReplica": 2}}
GLOG = ("--logtostderr=true", "--v=2", "--stderrthreshold=0", "--alsologtostderr", "--log_dir=/tmp", "--vmodule=a=1")
LAST_POLL = "/last-poll"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("proportional")


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectApiServer]:
    """Yield a server that grants only the ClusterRole and the Role of cluster-proportional-autoscaler."""
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
    until(lambda: proportional.items()["dns"]["binding"] == "linear/nodes")


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
    until(lambda: proportional.get(LAST_POLL, plain=True)[0] == 500)
    assert "this is not JSON" in proportional.get(LAST_POLL, plain=True)[1]
    until(lambda: any(" WARNING " in line and "this is not JSON" in line for line in proportional.log.splitlines()))
    parameters(server, '{"nodesPerReplica": 4}')
    until(lambda: replicas_of(server) == 4)
    until(lambda: proportional.get(LAST_POLL, plain=True)[0] == 200)


def test_last_poll_reports_a_failed_scale_call(proportional: Recommender, server: ObjectApiServer) -> None:
    parameters(server, '{"nodesPerReplica": 4}')
    server.objects.deny("update", "deployments/scale")
    put_nodes(server, 20)
    until(lambda: proportional.get(LAST_POLL, plain=True)[0] == 500)
    assert "deployments" in proportional.get(LAST_POLL, plain=True)[1]
    server.objects.allow("update", "deployments/scale")
    until(lambda: replicas_of(server) == 5, 30)
    until(lambda: proportional.get(LAST_POLL, plain=True)[0] == 200)


def test_only_the_config_map_and_scales_are_written(proportional: Recommender, server: ObjectApiServer) -> None:
    assert proportional.items()
    root = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/coredns/scale"
    events = ("POST", f"/api/v1/namespaces/{NAMESPACE}/events")

    def written() -> set[tuple[str, str]]:
        return {
            (asked.verb, asked.path) for asked in server.requests if asked.verb in {"POST", "PUT", "PATCH", "DELETE"}
        }

    until(lambda: ("PUT", root) in written())
    assert written() - {events} == {("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps"), ("PUT", root)}


def test_the_process_exits_with_1_after_max_sync_failures(server: ObjectApiServer, folder: Path) -> None:
    more = ("--max-sync-failures=2",)
    with running(
        "proportional", *flags(server, folder, "missing"), *more, log_path=folder / "failing.log"
    ) as recommender:
        assert recommender.process.wait(30) == 1
        assert "2 consecutive polls have failed" in recommender.log


def test_a_slow_first_list_of_nodes_ends_no_process(tmp_path: Path) -> None:
    with cluster_server() as server:
        put_nodes(server, 8)
        server.slow["/api/v1/nodes"] = 4.0
        command = (*flags(server, tmp_path, "dns"), f"--default-params={json.dumps(DEFAULTS)}", "--max-sync-failures=1")
        with running("proportional", *command, log_path=tmp_path / "log") as recommender:
            # The very first poll may end before the ConfigMap has been read, with that as its reason.
            reason = "the first list has not arrived yet"
            until(lambda: (last := recommender.get(LAST_POLL, plain=True))[0] == 500 and reason in last[1])
            until(lambda: replicas_of(server) == 4, 30)
            assert recommender.process.is_running


def test_a_first_list_without_nodes_does_not_scale_down(tmp_path: Path) -> None:
    with cluster_server() as server:
        command = (*flags(server, tmp_path, "dns"), f"--default-params={json.dumps(DEFAULTS)}")
        with running("proportional", *command, log_path=tmp_path / "log") as recommender:
            reason = "the first list since the start was empty, and Deployment kube-system/coredns has 2 replicas"
            until(lambda: reason in recommender.get(LAST_POLL, plain=True)[1], 30)
        assert replicas_of(server) == 2


def test_proportional_is_one_process_with_one_port_and_few_imports(server: ObjectApiServer, tmp_path: Path) -> None:
    parameters(server, '{"nodesPerReplica": 4}')
    modules = LoadedModules(tmp_path / "modules")
    environment = {**modules.environment, "no_proxy": "*"}
    command = [PROGRAM, "proportional", *flags(server, tmp_path, "dns"), "--plain-bind-address=127.0.0.1:0"]
    with start(command, log_path=tmp_path / "log", environment=environment, folder=tmp_path) as process:
        lean = Recommender(process)
        until(lambda: "\ntidewatch_recommended_replicas{" in lean.get("/metrics", plain=True)[1], 30)
        pid = process.pid
        assert Path(f"/proc/{pid}/task/{pid}/children").read_text() == ""
        assert len(listening_sockets(pid)) == 1
        assert process.stop(10) == 0
    program = "import sys; print(*sys.modules)"
    usual = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    ours = modules.packages() & set(packages_distributions())
    ours -= {"adapter", "recommender", *(name.partition(".")[0] for name in usual.stdout.split())}
    # The last two are those of the kubeconfig, and what msgspec looks for.
    assert ours <= {"msgspec", "prometheus_client", "urllib3", "yaml", "typing_extensions"}
    assert not {"sqlite3", "multiprocessing"} & modules.packages()


def listening_sockets(pid: int) -> set[str]:
    """Return the inodes of a process's listening TCP sockets."""
    tables = [Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    listening = {fields[9] for table in tables for line in table if (fields := line.split())[3] == "0A"}
    targets = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    return listening & {target.removeprefix("socket:[").rstrip("]") for target in targets}


def test_health_is_served_before_the_cluster_is_reachable(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = tmp_path / "config"
        cluster = {"server": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        content = {
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": cluster}],
            "users": [{"name": "a", "user": {}}],
        }
        config.write_text(json.dumps(content))
        known = (f"--namespace={NAMESPACE}", "--configmap=dns", "--target=deployment/coredns")
        with running("proportional", *known, f"--kubeconfig={config}", log_path=tmp_path / "log") as recommender:
            assert recommender.get("/healthz", plain=True)[:2] == (200, "ok\n")
            assert recommender.process.stop(10) == 0


def test_a_process_without_a_usable_kubeconfig_exits_with_the_reason(tmp_path: Path) -> None:
    known = (f"--namespace={NAMESPACE}", "--configmap=dns", "--target=deployment/coredns")
    missing = f"--kubeconfig={tmp_path / 'missing'}"
    with running("proportional", *known, missing, log_path=tmp_path / "log") as recommender:
        assert recommender.process.wait(30) == 2
        assert "tidewatch-recommender: kubeconfig " in recommender.log
