"""The tutorials that need a cluster: every command runs as it stands, in order, with the page's files saved.

What a reader would already have is made here: an installed adapter to replace, pods with connections, and nodes with
loads.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest

from tests.docs.tutorials import reader_s_folder, steps_of
from tests.e2e.controlplane.pod_metrics import each
from tests.e2e.nodes.load_aware import loaded_cluster, scheduler_configuration
from tests.e2e.nodes.node_loads import NodeLoad
from tests.e2e.support.readers import Shell, namespaces, prometheus_at, small_deployment
from tests.e2e.support.recommenders import POOL
from tests.helm.chart import CHART, helm
from tests.support.checkout import CHECKOUT
from tests.support.prometheus import ScrapedPrometheus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.e2e.controlplane.programs import Programs

pytestmark = [pytest.mark.needs_pods, pytest.mark.timeout(400)]

MONITORING: Final = "monitoring"
CHAT: Final = "chat"
SHOP: Final = "shop"
PROMETHEUS: Final = "http://prometheus.monitoring:9090"
_BOTH: Final = {"key": POOL, "operator": "In", "values": ["calm", "busy"]}
_TERMS: Final = {"nodeSelectorTerms": [{"matchExpressions": [_BOTH]}]}
AMONG_BOTH: Final = json.dumps({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _TERMS}})
SERVED: Final = ("get --raw", "get hpa", "why hpa")
"""Commands that a reader repeats until they show something."""


class Reader:
    """Follows a tutorial, and keeps the output of each command."""

    def __init__(self, shell: Shell, cluster: Cluster, folder: Path) -> None:
        self._shell = shell
        self._cluster = cluster
        self._folder = folder
        self._stack = ExitStack()
        self.printed: dict[str, str] = {}

    def follow(self, name: str, replaced: Callable[[str], str] = str) -> None:
        """Run all steps; `replaced` maps the page's addresses to those of this machine."""
        with self._stack:
            for step in steps_of(name):
                text = replaced(step.text)
                if step.file:
                    (self._folder / step.file).write_text(text)
                    continue
                for command in re.sub(r" \\\n\s*", " ", text).splitlines():
                    self._run(command)

    def _run(self, command: str) -> None:
        if command.endswith(" &"):
            self._stack.enter_context(self._shell.in_background(command.removesuffix(" &")))
            return
        if any(each in command for each in SERVED):
            self._cluster.wait_for(command, lambda: self._shell(command).returncode == 0, 120.0)
        done = self._shell(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        self.printed[command] = done.stdout

    def answer(self, part: str) -> str:
        """Return the output of the command that contains this part."""
        (found,) = [text for command, text in self.printed.items() if part in command]
        return found


@pytest.fixture
def reader(cluster: Cluster, kubernetes_programs: Programs, tmp_path: Path) -> Reader:
    folder = tmp_path / "checkout"
    folder.mkdir()
    home = tmp_path / "home"
    home.mkdir()
    return Reader(Shell(cluster, kubernetes_programs, home, reader_s_folder(folder)), cluster, folder)


def uninstall(cluster: Cluster, release: str) -> None:
    helm("uninstall", release, "--ignore-not-found", "--namespace", MONITORING, kubeconfig=cluster.kubeconfig)


def test_replace_an_adapter(cluster: Cluster, pod_metrics: PodMetrics, reader: Reader, tmp_path: Path) -> None:
    rules = (CHECKOUT / "rules" / "adapter" / "websocket.yaml").read_text()
    old = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "prometheus-adapter", "namespace": MONITORING},
        "data": {"config.yaml": rules},
    }
    with (
        namespaces(cluster, MONITORING, CHAT),
        prometheus_at(cluster, pod_metrics, tmp_path / "prometheus", PROMETHEUS) as prometheus,
    ):
        cluster.apply(old, small_deployment(CHAT, "gateway"))
        values = {"prometheus": {"url": PROMETHEUS.rpartition(":")[0], "port": 9090}, "replicas": 1}
        options = ("--namespace", MONITORING)
        helm("install", "prometheus-adapter", str(CHART), *options, values=values, kubeconfig=cluster.kubeconfig)
        cluster.wait_until_ready(CHAT, "gateway")
        pod_metrics.of_pods("websocket_connections", CHAT, "app=gateway", each(9000.0))
        scraped = ScrapedPrometheus(prometheus, pod_metrics.exporter)
        cluster.wait_for("the series", lambda: len(scraped.query("websocket_connections")) == 2)
        try:
            reader.follow("replace-an-adapter")
            served = json.loads(reader.answer("get --raw"))["items"]
            assert {item["value"] for item in served} == {"9k"}
        finally:
            pod_metrics.forget_pods("websocket_connections", CHAT, "app=gateway")
            uninstall(cluster, "tidewatch")
            uninstall(cluster, "prometheus-adapter")


def test_place_by_load(cluster: Cluster, reader: Reader, tmp_path: Path) -> None:
    pools = {"calm": [NodeLoad(0.1)], "busy": [NodeLoad(0.97, 0.96)]}
    scheduler = scheduler_configuration("http://127.0.0.1:2020", "tidewatch")
    with loaded_cluster(cluster, tmp_path, "tutorial", pools) as loaded, namespaces(cluster, MONITORING, SHOP):

        def replaced(text: str) -> str:
            for address in ("http://prometheus:9090", PROMETHEUS):
                text = text.replace(address, loaded.prometheus_url)
            # The node that all tests share is not one of the page's.
            return text.replace("schedulerName: tidewatch", f"schedulerName: tidewatch\n      affinity: {AMONG_BOTH}")

        with cluster.start_scheduler(scheduler):
            try:
                reader.follow("place-by-load", replaced)
                scores = json.loads(reader.answer("/scores"))["scores"]
                ranked = [one["node"] for one in scores if one["node"] in {"calm-0", "busy-0"}]
                assert ranked == ["calm-0", "busy-0"]
                (pod,) = cluster.wait_for("its pod", lambda: cluster.pods(SHOP))
                assert pod["metadata"]["labels"]["app"] == "web"
                cluster.wait_for("a place", lambda: cluster.pods(SHOP)[0]["spec"].get("nodeName") == "calm-0")
            finally:
                uninstall(cluster, "tidewatch")
