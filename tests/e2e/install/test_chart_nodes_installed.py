"""The loads of nodes, installed by the real Helm and run as the chart rendered them."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.helm.chart import CHART, helm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.controlplane.cluster import Cluster
    from tests.support.prometheus import ScrapedPrometheus

NAME: Final = "tidewatch-nodes"
READ: Final = {"nodes", "pods", "services", "replicationcontrollers", "replicasets", "statefulsets", "daemonsets"}


@contextmanager
def installed(cluster: Cluster, namespace: str, values: dict[str, Any]) -> Iterator[None]:
    options = ("--namespace", namespace)
    helm("install", "tidewatch", str(CHART), *options, values=values, kubeconfig=cluster.kubeconfig)
    try:
        yield
    finally:
        helm("uninstall", "tidewatch", *options, kubeconfig=cluster.kubeconfig)


def ask(url: str, token: str = "") -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read()


def secrets(cluster: Cluster, namespace: str) -> dict[str, dict[str, bytes]]:
    """Return the data of the Secrets that the chart has made, by the end of their names."""
    found = {}
    for part in ("serving", "client", "token"):
        one = cluster.client.get(f"/api/v1/namespaces/{namespace}/secrets/{NAME}-{part}")
        found[part] = {key: base64.b64decode(value) for key, value in one["data"].items()}
    return found


def filtered(address: str, made: dict[str, dict[str, bytes]], folder: Path, *, with_certificate: bool) -> int:
    """Return the status of a call to the filter, sent as the scheduler sends it."""
    context = ssl.create_default_context(cadata=made["serving"]["ca.crt"].decode())
    context.check_hostname = False  # the pod is asked by its address, and the Service by its name
    if with_certificate:
        for key in ("tls.crt", "tls.key"):
            (folder / key).write_bytes(made["client"][key])
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    body = {"Pod": {"metadata": {"name": "new"}, "spec": {"containers": []}}, "NodeNames": ["e2e-node"]}
    asked = urllib.request.Request(f"https://{address}:2020/scheduler/filter", json.dumps(body).encode())
    try:
        with urllib.request.urlopen(asked, timeout=10, context=context) as response:
            return int(response.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


@pytest.mark.needs_pods
def test_it_knows_the_nodes_with_the_rights_of_the_chart_and_is_ready_without_metrics_of_them(
    cluster: Cluster, namespace: str, prometheus: ScrapedPrometheus, tmp_path: Path
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
        made = secrets(cluster, namespace)
        token = made["token"]["token"].decode()
        assert ask(f"{address}:2020/hotspots")[0] == ask(f"{address}:2020/hotspots", "another")[0] == 401
        status, scores = ask(f"{address}:2020/scores?policy=target-load-packing&cpu=500m", token)
        assert status == 200
        assert "e2e-node" in {one["node"] for one in json.loads(scores)["scores"]}
        # Nothing is served as a load that was never measured.
        assert ask(f"{address}:2020/watcher", token)[0] == 503
        # The scheduler's certificate, and nobody else, opens the scheduler's paths.
        assert filtered(pod["status"]["podIP"], made, tmp_path, with_certificate=True) == 200
        assert filtered(pod["status"]["podIP"], made, tmp_path, with_certificate=False) == 401
        helm("upgrade", "tidewatch", str(CHART), "--namespace", namespace, values=values, kubeconfig=cluster.kubeconfig)
        assert secrets(cluster, namespace) == made
        assert b'tidewatch_adapter_extender_basis{basis="none"} 1' in ask(f"{address}:9180/metrics")[1]
        account = f"system:serviceaccount:{namespace}:{NAME}"
        asked = [event for event in cluster.audit_events() if event.user == account]
        assert {event.resource for event in asked if event.verb == "watch"} == READ
        assert {event.code for event in asked} == {200}
