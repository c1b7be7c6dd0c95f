"""A reader of the pages: a shell in a checkout, with an administrator's kubeconfig where kubectl looks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import pytest

from demo.machine.processes import start
from demo.machine.prometheus import Access, PrometheusProcess
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.e2e.controlplane.programs import Programs

CURL: Final = """#!{python}
import sys, urllib.request
sys.path.insert(0, "{checkout}")
from tests.support.waiting import until

def asked():
    try:
        with urllib.request.urlopen(sys.argv[-1], timeout=10) as answer:
            return answer.read().decode() or " "
    except OSError:
        return ""

print(until(asked, 100))
"""
"""Stands in for a reader's curl on machines without it, and retries after a 503, as the pages tell the reader to do."""


class Shell:
    """Runs command lines as a person does."""

    def __init__(self, cluster: Cluster, programs: Programs, home: Path, folder: Path = CHECKOUT) -> None:
        """`home` gets a ~/.kube/config; commands run in `folder`."""
        kubectl = Path(programs["kubectl"])
        (home / ".kube").mkdir()
        (home / ".kube" / "config").symlink_to(cluster.kubeconfig)
        own = home / "bin"
        own.mkdir()
        (own / "curl").write_text(CURL.format(python=sys.executable, checkout=CHECKOUT))
        (own / "curl").chmod(0o755)
        self._path = f"{own}:{kubectl.parent}:{sys.prefix}/bin:{os.environ['PATH']}"
        self._home = home
        self._folder = folder

    @property
    def _environment(self) -> Mapping[str, str]:
        return {"PATH": self._path, "HOME": str(self._home), "no_proxy": "*"}

    def __call__(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command line until it ends."""
        return subprocess.run(
            ["sh", "-c", command],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )

    @contextmanager
    def in_background(self, command: str) -> Iterator[None]:
        """Run a command line in the background until the block ends."""
        log = self._home / "background.log"
        with start(["sh", "-c", f"exec {command}"], log_path=log, environment=self._environment, folder=self._folder):
            yield


@pytest.fixture
def shell(cluster: Cluster, kubernetes_programs: Programs, tmp_path: Path) -> Shell:
    """Return a shell that runs command lines in the checkout as its owner would."""
    return Shell(cluster, kubernetes_programs, tmp_path)


@contextmanager
def namespaces(cluster: Cluster, *names: str) -> Iterator[None]:
    """Make namespaces with these names; at the end of the block, wait until they are gone."""
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
def prometheus_at(cluster: Cluster, pod_metrics: PodMetrics, folder: Path, address: str) -> Iterator[PrometheusProcess]:
    """Run a Prometheus at the URL that a page names, which is that of a Service in an existing namespace.

    The stand-in for the kubelet resolves only names of headless Services, so the Service is headless.
    """
    url = urlsplit(address)
    name, namespace = str(url.hostname).split(".")
    host, port = cluster.network.host, url.port or 80
    folder.mkdir()
    prometheus = PrometheusProcess(folder, [], Access(host=host))
    prometheus.port = port
    scrape = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    prometheus.configure({"global": scrape, "scrape_configs": [pod_metrics.scrape_config()]})
    prometheus.start_again()
    try:
        cluster.apply(*_service(name, namespace, host, port))
        # The service proxy of the API server goes to addresses of pods alone.
        status = {"phase": "Running", "podIP": host, "podIPs": [{"ip": host}]}
        cluster.client.merge(f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": status})
        yield prometheus
    finally:
        prometheus.stop()


def _service(name: str, namespace: str, address: str, port: int) -> list[Document]:
    """Return a Service with an unscheduled pod, which stands for a program that runs outside of the cluster."""
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
