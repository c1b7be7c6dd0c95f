"""The loads of nodes, installed by the real Helm and run as the chart rendered them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.helm.chart import CHART, helm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.controlplane.cluster import Cluster
    from tests.support.prometheus import ScrapedPrometheus

NAME: Final = "tidewatch-nodes"
READ: Final = {"nodes", "pods", "services", "replicationcontrollers", "replicasets", "statefulsets"}


@contextmanager
def installed(cluster: Cluster, namespace: str, values: dict[str, Any]) -> Iterator[None]:
    options = ("--namespace", namespace)
    helm("install", "tidewatch", str(CHART), *options, values=values, kubeconfig=cluster.kubeconfig)
    try:
        yield
    finally:
        helm("uninstall", "tidewatch", *options, kubeconfig=cluster.kubeconfig)


def ask(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read()


@pytest.mark.needs_pods
def test_it_knows_the_nodes_with_the_rights_of_the_chart_and_is_ready_without_metrics_of_them(
    cluster: Cluster, namespace: str, prometheus: ScrapedPrometheus
) -> None:
    url, _, port = prometheus.url.rpartition(":")
    values = {
        "adapter": {"enabled": False},
        "nodes": {"enabled": True, "replicas": 1},
        "prometheus": {"url": url, "port": int(port)},
    }
    with installed(cluster, namespace, values):
        (pod,) = cluster.wait_until_ready(namespace, NAME)
        address = f"http://{pod['status']['podIP']}"
        status, scores = ask(f"{address}:2020/scores?policy=target-load-packing&cpu=500m")
        assert status == 200
        assert "e2e-node" in {one["node"] for one in json.loads(scores)["scores"]}
        # Nothing is served as a load that was never measured.
        assert ask(f"{address}:2020/watcher")[0] == 503
        assert b'tidewatch_adapter_extender_basis{basis="none"} 1' in ask(f"{address}:9180/metrics")[1]
        account = f"system:serviceaccount:{namespace}:{NAME}"
        asked = [event for event in cluster.audit_events() if event.user == account]
        assert {event.resource for event in asked if event.verb == "watch"} == READ
        assert {event.code for event in asked} == {200}
