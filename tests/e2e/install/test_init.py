"""From `helm install` to an HPA that reads a metric: the commands of docs/init.md as a new user runs them, timed."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

import pytest
import yaml

from tests.e2e.controlplane.pod_metrics import each
from tests.e2e.support.figures import state
from tests.e2e.support.readers import namespaces, prometheus_at, shell, small_deployment
from tests.helm.chart import helm
from tests.support.checkout import CHECKOUT
from tests.support.prometheus import ScrapedPrometheus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.e2e.support.readers import Shell

__all__ = ["shell", "state"]

pytestmark = [pytest.mark.needs_pods, pytest.mark.timeout(300)]

NAMESPACE: Final = "monitoring"
CHAT: Final = "chat"
SECTION: Final = "## From the installation to an HPA"
CONNECTIONS: Final = 120.0
HPA: Final = f"/apis/autoscaling/v2/namespaces/{CHAT}/horizontalpodautoscalers/web"
QUEUE: Final = {"namespace": CHAT, "queue": "mail", "vhost": "/"}


def documented_commands() -> list[str]:
    """Return the commands of the page's section, without line breaks."""
    page = (CHECKOUT / "docs" / "init.md").read_text()
    section = page.partition(SECTION)[2].partition("\n## ")[0]
    text = "".join(re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL))
    return re.sub(r"\\\n\s*", "", text).splitlines()


@pytest.fixture
def strange_cluster(cluster: Cluster, pod_metrics: PodMetrics, tmp_path: Path) -> Iterator[None]:
    """Run Prometheus, a workload whose pods count their connections, and an exporter of RabbitMQ."""
    with (
        namespaces(cluster, NAMESPACE, CHAT),
        prometheus_at(
            cluster, pod_metrics, tmp_path / "prometheus", f"http://prometheus.{NAMESPACE}:9090"
        ) as prometheus,
    ):
        cluster.apply(small_deployment(CHAT, "web"))
        cluster.wait_until_ready(CHAT, "web")
        pod_metrics.of_pods("websocket_connections", CHAT, "app=web", each(CONNECTIONS))
        pod_metrics.set("rabbitmq_queue_messages_ready", 40.0, **QUEUE)
        scraped = ScrapedPrometheus(prometheus, pod_metrics.exporter)
        cluster.wait_for("the series", lambda: len(scraped.query("websocket_connections")) == 2)
        try:
            yield
        finally:
            pod_metrics.forget_pods("websocket_connections", CHAT, "app=web")
            pod_metrics.set("rabbitmq_queue_messages_ready", None, **QUEUE)
            options = ("--ignore-not-found", "--namespace", NAMESPACE)
            helm("uninstall", "tidewatch", *options, kubeconfig=cluster.kubeconfig)


def value_of(autoscaler: Document) -> tuple[str, str]:
    """Return the average that an HPA read last, and whether it is active; empty texts before it has read any."""
    status = autoscaler.get("status") or {}
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    metrics = status.get("currentMetrics") or [{}]
    value = (metrics[0].get("pods") or {}).get("current", {}).get("averageValue", "")
    return str(value), str(conditions.get("ScalingActive", ""))


@pytest.mark.usefixtures("strange_cluster")
def test_the_documented_commands_lead_to_an_hpa_that_reads_a_metric(
    cluster: Cluster,
    shell: Shell,
    state: Callable[[str, str], None],
    tmp_path: Path,
) -> None:
    began = time.monotonic()
    printed = {}
    folder = tmp_path / "newcomer"
    folder.mkdir()
    (folder / "helm").symlink_to(CHECKOUT / "helm")
    for command in documented_commands():
        started = time.monotonic()
        done = shell(f"cd {folder} && {command}")
        state(f"a newcomer runs {' '.join(command.split()[:2])}", f"{time.monotonic() - started:.1f} s")
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        printed[command] = done.stdout
        if command.startswith("kubectl apply"):
            cluster.wait_for(
                "the HPA's metric",
                lambda: value_of(cluster.client.get(HPA)) == ("120", "True"),
                120,
                why_not=lambda: cluster.client.get(HPA).get("status"),
            )
            state("from helm install to an HPA that reads a metric", f"{time.monotonic() - began:.1f} s")
    (made,) = [text for command, text in printed.items() if command.startswith("tidewatch-recommender")]
    assert re.search(r"\bweb: \d+ replicas recommended, 2 running", made), made
    rules = yaml.safe_load((folder / "tidewatch" / "rules.yaml").read_text())
    assert [rule["seriesQuery"].partition("{")[0] for rule in rules["externalRules"]] == [
        "rabbitmq_queue_messages_ready"
    ]
    cluster.wait_until_ready(NAMESPACE, "tidewatch-recommender")
    assert cluster.client.get(HPA)["spec"]["minReplicas"] == 2
