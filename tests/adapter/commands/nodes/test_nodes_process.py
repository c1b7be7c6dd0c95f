"""The running program with a real Prometheus: what its readers see, and what survives restarts and outages."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from demo.machine.files import replace_file
from tests.adapter.commands.nodes.harness import BUSY, OBJECTS, POD, UNMAPPED, NodesProcess, running_nodes, series_at
from tests.support.harnesses import prometheus_with
from tests.support.loaded_modules import SCIENTIFIC, LoadedModules
from tests.support.serving import Trust, eventually, run

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess

NAMES = ["node-1", "node-2", "node-3"]
CONFIGURATION = """\
apiVersion: tidewatch.io/v1alpha1
kind: SchedulingConfiguration
poolLabel: example.com/pool
filter: {{cpu: {limit}}}
hotspots: {{cpu: 80%, rounds: 1}}
"""


@pytest.fixture(name="prometheus", scope="module")
def _prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusProcess]:
    with prometheus_with(tmp_path_factory.mktemp("prometheus"), series_at(int(time.time()))) as running:
        yield running


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nodes")
    (folder / "scheduling.yaml").write_text(CONFIGURATION.format(limit="80%"))
    return folder


@pytest.fixture(name="modules", scope="module")
def _modules(tmp_path_factory: pytest.TempPathFactory) -> LoadedModules:
    return LoadedModules(tmp_path_factory.mktemp("modules"))


@pytest.fixture(name="nodes", scope="module")
def _nodes(folder: Path, prometheus: PrometheusProcess, modules: LoadedModules) -> Iterator[NodesProcess]:
    flags = (
        f"--prometheus-url={prometheus.url}",
        f"--scheduling-config={folder / 'scheduling.yaml'}",
        f"--state={folder / 'samples'}",
        "--plain-bind-address=127.0.0.1:0",
    )
    with running_nodes(folder, *flags, environment=modules.environment, objects=OBJECTS, as_installed=True) as running:
        running.watched()
        eventually(lambda: running.ask("/readyz").status == 200)
        yield running


def test_the_watcher_has_every_node_with_its_zone_and_pool(nodes: NodesProcess) -> None:
    watched = nodes.watched()
    assert sorted(watched) == NAMES
    assert watched["node-1"]["metadata"] == {"dataCenter": "east", "pool": "web", "resolutionSeconds": 15.0}
    assert nodes.values("node-1") == pytest.approx(
        {"CPU AVG": 25.0, "CPU STD": 0.0, "Memory AVG": 25.0, "Memory STD": 0.0}, abs=0.1
    )
    assert nodes.values("node-2")["CPU AVG"] == pytest.approx(90.0, abs=0.1)
    assert list(nodes.watched("/watcher/node-3?window=5m")) == ["node-3"]
    assert nodes.ask("/watcher/health").status == 200


def test_a_series_without_a_node_is_listed_and_logged(nodes: NodesProcess) -> None:
    (unmapped,) = nodes.ask("/nodes/unmapped").document["items"]
    assert unmapped["instance"] == UNMAPPED
    # The log is written by a thread of its own.
    eventually(lambda: "series cannot be mapped to a node" in nodes.log)
    assert nodes.log.count("series cannot be mapped to a node") == 1


def test_the_scheduler_gets_scores_and_reasons(nodes: NodesProcess) -> None:
    answer, scores = nodes.prioritized(NAMES)
    assert answer.header("Tidewatch-Basis") == "metrics"
    assert scores["node-1"] > scores["node-3"] > scores["node-2"]
    best = nodes.ask("/scores?policy=target-load-packing&cpu=200m").document["scores"][0]
    assert best["node"] == "node-1"


def test_a_filter_returns_whole_nodes_up_to_the_size_limit_of_a_request(nodes: NodesProcess) -> None:
    items = [{"metadata": {"name": name, "annotations": {"a": "x" * (13 << 20)}}} for name in ("node-1", "a", "b", "c")]
    answer = nodes.ask("/scheduler/filter", {"Pod": POD, "Nodes": {"items": items}, "NodeNames": None})
    assert answer.status == 200
    assert [each["metadata"]["name"] for each in answer.document["Nodes"]["items"]] == ["node-1", "a", "b", "c"]


def test_the_descheduler_query_and_the_hotspots_use_the_same_loads(nodes: NodesProcess) -> None:
    hot = nodes.ask("/hotspots").document["hot"]
    assert [each["node"] for each in hot] == ["node-2"]
    query = urlencode({"query": 'tidewatch_node_utilization_ratio{resource="cpu",window="15m",stat="avg"}'})
    result = nodes.ask(f"/api/v1/query?{query}").document["data"]["result"]
    found = {each["metric"]["instance"]: float(each["value"][1]) for each in result}
    assert found == pytest.approx(dict(zip(NAMES, BUSY.values(), strict=True)), abs=0.001)


def test_numpy_is_the_only_scientific_package_that_is_loaded(nodes: NodesProcess, modules: LoadedModules) -> None:
    nodes.prioritized(NAMES)
    for path in ("/hotspots", "/scores?policy=low-risk-overcommitment&cpu=200m", "/watcher", "/metrics"):
        assert nodes.ask(path).status == 200
    assert modules.packages() & SCIENTIFIC == {"numpy"}


def test_health_and_metrics_are_on_both_ports(nodes: NodesProcess) -> None:
    for port in (nodes.port, nodes.plain_port):
        for path in ("/healthz", "/livez", "/readyz"):
            assert nodes.ask(path, port=port).text.startswith("ok")
        metrics = nodes.ask("/metrics", port=port, packed=True).text
        for line in (
            'tidewatch_node_hot{node="node-2"} 1',
            'tidewatch_adapter_extender_basis{basis="metrics"} 1.0',
            'tidewatch_nodes{state="unmapped"} 1',
            "tidewatch_adapter_config_last_reload_successful 1.0",
        ):
            assert line in metrics.splitlines()
        assert 'tidewatch_node_sample_age_seconds{node="node-1"}' in metrics
    assert nodes.ask("/metrics", packed=True).header("Content-Encoding") == "gzip"
    assert nodes.ask("/readyz/refresh").text == "ok"
    assert nodes.ask("/nothing").status == 404


def test_a_changed_configuration_is_in_force_and_a_broken_one_is_refused(nodes: NodesProcess, folder: Path) -> None:
    file = folder / "scheduling.yaml"

    def accepted() -> list[str]:
        names: list[str] = nodes.ask("/scheduler/filter", {"Pod": POD, "NodeNames": NAMES}).document["NodeNames"]
        return names

    failed = nodes.ask("/scheduler/filter", {"Pod": POD, "NodeNames": NAMES}).document["FailedNodes"]
    assert list(failed) == ["node-2"]
    replace_file(file, CONFIGURATION.format(limit="40%"))
    eventually(lambda: accepted() == ["node-1"])
    replace_file(file, CONFIGURATION.format(limit="lots"))
    eventually(lambda: "tidewatch_adapter_config_last_reload_successful 0.0" in nodes.ask("/metrics").text)
    assert accepted() == ["node-1"]
    eventually(lambda: "scheduling.yaml:4: 'lots' is not a percentage" in nodes.log)
    replace_file(file, CONFIGURATION.format(limit="80%"))
    eventually(lambda: accepted() == ["node-1", "node-3"])


def test_a_new_pod_counts_before_the_metrics_show_it(nodes: NodesProcess, folder: Path) -> None:
    _, before = nodes.prioritized(NAMES)
    bound = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "big", "namespace": "shop", "uid": "2"},
        "spec": {
            "nodeName": "node-1",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}}],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "True",
                    "lastTransitionTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                }
            ],
        },
    }
    file = folder / "objects" / "pod.json"
    replace_file(file, json.dumps(bound))
    eventually(lambda: nodes.prioritized(NAMES)[1]["node-1"] < before["node-1"])
    file.unlink()
    eventually(lambda: nodes.prioritized(NAMES)[1] == before)


def test_after_a_crash_the_windows_of_the_state_file_are_served(prometheus: PrometheusProcess, tmp_path: Path) -> None:
    flags = (f"--prometheus-url={prometheus.url}", f"--state={tmp_path / 'samples'}")
    with running_nodes(tmp_path, *flags, objects=OBJECTS) as before:
        expected = before.values("node-2")
        eventually((tmp_path / "samples").exists)
        os.kill(before.process.pid, signal.SIGKILL)
    prometheus.pause()
    try:
        with running_nodes(tmp_path, *flags, objects=OBJECTS) as after:
            # The port opens when the file has been read.
            assert after.ask("/watcher").status == 200
            assert after.values("node-2") == pytest.approx(expected, abs=1e-4)
            assert sorted(after.watched()) == NAMES
            document = after.ask("/watcher").document
            assert document["timestamp"] == document["window"]["end"]
            assert after.prioritized(NAMES)[0].header("Tidewatch-Basis") == "metrics"
    finally:
        prometheus.resume()


@contextmanager
def relay(url: str) -> Iterator[tuple[int, threading.Event]]:
    """Yield a port at which connections are refused until the event is set, and then reach the URL."""
    host, port = url.removeprefix("http://").split(":")
    listener, is_open = socket.socket(), threading.Event()
    listener.bind(("127.0.0.1", 0))

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError), source:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        is_open.wait()
        with suppress(OSError), listener:
            listener.listen()
            while True:
                inner, _ = listener.accept()
                outer = socket.create_connection((host, int(port)))
                for pair in ((inner, outer), (outer, inner)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    try:
        yield listener.getsockname()[1], is_open
    finally:
        is_open.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        serving.join(10.0)


def test_with_only_load_watcher_variables_nodes_are_named_by_instance_once_prometheus_answers(
    prometheus: PrometheusProcess, tmp_path: Path
) -> None:
    secret = "not-to-be-seen"
    with relay(prometheus.url) as (port, is_open):
        environment = {
            "METRICS_PROVIDER_NAME": "Prometheus",
            "METRICS_PROVIDER_ADDRESS": f"http://127.0.0.1:{port}",
            "METRICS_PROVIDER_TOKEN": secret,
            "LOG_LEVEL": "debug",
        }
        with running_nodes(tmp_path, "--refresh-interval=1s", environment=environment) as nodes:
            eventually(lambda: nodes.ask("/readyz").status == 200)
            assert nodes.ask("/watcher").status == 503
            assert nodes.ask("/watcher/health").status == 503
            answer, scores = nodes.prioritized(NAMES)
            assert len(set(scores.values())) == 1
            assert answer.header("Tidewatch-Basis") == "none"
            is_open.set()
            assert sorted(nodes.watched()) == sorted(["10.0.0.1", "10.0.0.2", "node-3", "10.9.9.9"])
            eventually(lambda: "the label instance, without its port, is the name of a node" in nodes.log)
            assert nodes.log.count("the label instance, without its port, is the name of a node") == 1
            assert secret not in nodes.log


def answer_to_body_without_credentials(nodes: NodesProcess, context: ssl.SSLContext) -> bytes:
    """Return the first line of the answer to a large body, of which only the head is ever sent."""
    with (
        socket.create_connection(("127.0.0.1", nodes.port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as sock,
    ):
        sock.sendall(b"POST /scheduler/filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000000\r\n\r\n")
        return sock.recv(4096).partition(b"\r\n")[0]


def test_plain_http_beside_tls_keeps_the_access_rules(tmp_path: Path) -> None:
    trust = Trust.made_in(tmp_path / "trust")
    (tmp_path / "token").write_text("first")
    flags = (
        "--prometheus-url=http://127.0.0.1:9",
        f"--tls-cert-file={trust.server.certificate_file}",
        f"--tls-private-key-file={trust.server.key_file}",
        "--tls-optional",
        f"--client-ca-file={trust.front_proxies.ca_file}",
        f"--token-file={tmp_path / 'token'}",
        "--open-watcher",
    )
    args = {"Pod": POD, "NodeNames": NAMES}
    with running_nodes(tmp_path, *flags) as nodes:
        assert nodes.ask("/scheduler/filter", args, token="first").status == 401
        assert nodes.ask("/scheduler/filter", args, tls=trust.context(trust.front_proxy)).status == 200
        assert nodes.ask("/scores?policy=peaks").status == 401
        assert nodes.ask("/scores?policy=peaks", token="first").status == 200
        # There is no data, which is not the same as no token.
        assert [nodes.ask(path).status for path in ("/watcher", "/watcher/node-1")] == [503, 503]


def test_the_client_certificate_protects_the_scheduler_paths_and_the_token_the_reader_paths(tmp_path: Path) -> None:
    trust = Trust.made_in(tmp_path / "trust")
    (tmp_path / "token").write_text("first")
    flags = (
        "--prometheus-url=http://127.0.0.1:9",
        f"--tls-cert-file={trust.server.certificate_file}",
        f"--tls-private-key-file={trust.server.key_file}",
        f"--client-ca-file={trust.front_proxies.ca_file}",
        f"--token-file={tmp_path / 'token'}",
    )
    scheduler, anonymous = trust.context(trust.front_proxy), trust.context()
    args = {"Pod": POD, "NodeNames": NAMES}
    with running_nodes(tmp_path, *flags) as nodes:
        assert nodes.ask("/scheduler/filter", args, tls=anonymous, token="first").status == 401
        assert nodes.ask("/scheduler/filter", args, tls=scheduler).document["NodeNames"] == NAMES
        assert nodes.ask("/scores?policy=peaks", tls=scheduler).status == 401
        assert nodes.ask("/scores?policy=peaks", tls=anonymous, token="hunter2").status == 401
        assert nodes.ask("/scores?policy=peaks", tls=anonymous, token="first").status == 200
        assert answer_to_body_without_credentials(nodes, anonymous) == b"HTTP/1.1 401 Unauthorized"
        for path in ("/livez", "/metrics"):
            assert nodes.ask(path, tls=anonymous).status == 200
        (tmp_path / "token").write_text("hunter2")
        eventually(lambda: nodes.ask("/scores?policy=peaks", tls=anonymous, token="hunter2").status == 200)
        assert "hunter2" not in nodes.log


@pytest.mark.parametrize(
    ("flags", "environment", "error"),
    [
        ((), {"METRICS_PROVIDER_NAME": "Datadog"}, "METRICS_PROVIDER_NAME is Datadog, but windows are made from"),
        (("--scheduling-config=/missing",), {}, "/missing: "),
    ],
)
def test_invalid_settings_end_the_process_with_one_line(
    flags: tuple[str, ...], environment: dict[str, str], error: str
) -> None:
    ended = run("nodes", "--port=0", *flags, environment=environment)
    assert ended.code == 2
    assert ended.error.startswith(f"tidewatch-adapter: {error}")
    assert ended.error.count("\n") == 1
