"""A stranger's surroundings: a shell with an administrator's kubeconfig, and a cluster that has Prometheus already.

The stand-in for the kubelet resolves names of headless Services, so the Service of Prometheus is one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo.machine.prometheus import Access, PrometheusProcess
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.e2e.controlplane.programs import Programs


@pytest.fixture
def shell(
    cluster: Cluster, kubernetes_programs: Programs, tmp_path: Path
) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Run a command line in the checkout as its owner would, with an administrator's ~/.kube/config."""
    kubectl = Path(kubernetes_programs["kubectl"])
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").symlink_to(cluster.kubeconfig)
    path = f"{kubectl.parent}:{sys.prefix}/bin:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(tmp_path), "no_proxy": "*"}

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", command],
            cwd=CHECKOUT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@contextmanager
def namespaces(cluster: Cluster, *names: str) -> Iterator[None]:
    """Make namespaces of these names; the block ends when they are gone."""
    paths = [f"/api/v1/namespaces/{name}" for name in names]
    for name, path in zip(names, paths, strict=True):
        cluster.client.create("/api/v1/namespaces", {"metadata": {"name": name}})
        account = partial(cluster.client.find, f"{path}/serviceaccounts/default")
        cluster.wait_for(f"the service account of {name}", account)
    try:
        yield
    finally:
        for path in paths:
            cluster.client.delete(path)
        cluster.wait_for("the end of the namespaces", lambda: not any(map(cluster.client.find, paths)))


@contextmanager
def prometheus_at(
    cluster: Cluster, pod_metrics: PodMetrics, folder: Path, place: str, port: int
) -> Iterator[PrometheusProcess]:
    """Run a Prometheus behind the Service `place`, such as `prometheus.monitoring`, of a namespace that exists."""
    name, _, namespace = place.partition(".")
    folder.mkdir()
    prometheus = PrometheusProcess(folder, [], Access(host=cluster.network.host))
    prometheus.port = port
    scrape = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    prometheus.configure({"global": scrape, "scrape_configs": [pod_metrics.scrape_config()]})
    prometheus.start_again()
    try:
        cluster.apply(*_service(name, namespace, cluster.network.host, port))
        # The service proxy of the API server goes to addresses of pods alone.
        status = {"phase": "Running", "podIP": cluster.network.host, "podIPs": [{"ip": cluster.network.host}]}
        cluster.client.merge(f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": status})
        yield prometheus
    finally:
        prometheus.stop()


def _service(name: str, namespace: str, address: str, port: int) -> list[Document]:
    """Return a Service, with a pod that nobody schedules: it stands for a program that runs beside the cluster."""
    about = {"name": name, "namespace": namespace}
    pod = {"kind": "Pod", "name": name, "namespace": namespace}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": about,
            "spec": {"schedulerName": "nobody", "containers": [{"name": name, "image": name}]},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": about,
            "spec": {"clusterIP": "None", "ports": [{"port": port}]},
        },
        # The service proxy reads this one, and the stand-in for the kubelet the slice.
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {**about, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [{"addresses": [{"ip": address, "targetRef": pod}], "ports": [{"port": port}]}],
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**about, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address]}],
            "ports": [{"port": port}],
        },
    ]


def small_deployment(namespace: str, name: str) -> Document:
    """Return a Deployment of two pods."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": name, "image": name}]}},
        },
    }
