"""`cpva` and `pod-nanny` as processes, with the ports and paths that users of the original programs know."""

from __future__ import annotations

from importlib.metadata import packages_distributions
from typing import TYPE_CHECKING

import pytest

from demo.machine.processes import start
from tests.recommender.commands.cluster_harness import put_nodes
from tests.recommender.commands.vertical.harness import NAME, NAMESPACE, deployment_of, resources_of
from tests.support.loaded_modules import LoadedModules
from tests.support.object_apiserver import ObjectApiServer
from tests.support.recommenders import PROGRAM, Recommender
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = '{"main":{"requests":{"cpu":{"base":"100m","step":"100m","nodesPerStep":1}}}}'


@pytest.fixture
def server() -> Iterator[ObjectApiServer]:
    with ObjectApiServer() as server:
        deployment_of(server)
        put_nodes(server, 2)
        yield server


def test_cpva_opens_no_port_unless_one_is_configured(server: ObjectApiServer, tmp_path: Path) -> None:
    command = [PROGRAM, "cpva", f"--target=deployment/{NAME}", f"--default-config={CONFIG}"]
    environment = {"no_proxy": "*", "MY_NAMESPACE": NAMESPACE, "KUBECONFIG": str(server.kubeconfig(tmp_path / "k"))}
    with start(command, log_path=tmp_path / "log", environment=environment, folder=tmp_path) as process:
        until(lambda: resources_of(server).get("requests") == {"cpu": "300m"}, 30)
        assert process.stop(10) == 0
    assert "metrics and health" not in (tmp_path / "log").read_text()


def test_pod_nanny_serves_the_paths_of_addon_resizer_with_few_imports(server: ObjectApiServer, tmp_path: Path) -> None:
    modules = LoadedModules(tmp_path / "modules")
    environment = {**modules.environment, "no_proxy": "*", "MY_POD_NAMESPACE": NAMESPACE}
    flags = ("--container=main", "--cpu=300m", "--extra-cpu=20m", "--poll-period=1000")
    addresses = ("--healthcheck-address=127.0.0.1:0", "--expose-metrics", "--address=127.0.0.1:0")
    kubeconfig = f"--kubeconfig={server.kubeconfig(tmp_path / 'k')}"
    command = [PROGRAM, "pod-nanny", f"--deployment={NAME}", *flags, *addresses, kubeconfig]
    with start(command, log_path=tmp_path / "log", environment=environment, folder=tmp_path) as process:
        nanny = Recommender(process)
        outcome = 'addon_resizer_execution_outcome{outcome="updated_resources"}'
        until(lambda: nanny.metric(outcome) == "1", 30)
        assert nanny.get("/health-check", plain=True)[:2] == (200, "OK")
        assert nanny.log.count("metrics and health are served") == 2
        server.forbid("list", "nodes")
        until(lambda: nanny.get("/last-poll", plain=True)[0] == 500)
        assert "403 Forbidden" in nanny.get("/last-poll", plain=True)[1]
        assert nanny.get("/health-check", plain=True)[0] == 200
        assert process.stop(10) == 0
    assert resources_of(server)["limits"] == {"cpu": "340m"}
    ours = modules.packages() & set(packages_distributions()) - {"adapter", "recommender"}
    heavy = {"gunicorn", "flask", "numpy", "pandas", "cryptography", "kubernetes", "requests", "sqlite3"}
    assert not ours & heavy


def test_an_address_that_cannot_be_bound_ends_the_process_with_the_reason(tmp_path: Path) -> None:
    command = [PROGRAM, "pod-nanny", "--deployment=a", "--namespace=b", "--cpu=1", "--healthcheck-address=192.0.2.1:1"]
    with start(command, log_path=tmp_path / "log", folder=tmp_path) as process:
        assert process.wait(30) == 1
    assert "tidewatch-recommender: " in (tmp_path / "log").read_text()
    assert "192.0.2.1:1" in (tmp_path / "log").read_text()
