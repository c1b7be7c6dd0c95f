"""The adapter in a real cluster, as the chart installs it, between the real API server and a real Prometheus.

The cluster is that of the end-to-end tests, `tests/e2e/controlplane`, whose README says which parts of it are real.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.usage import Usage, usage
from demo.machine.prometheus import Access, running_prometheus
from tests.e2e.controlplane import network, programs
from tests.e2e.controlplane.cluster import Cluster, process_of, running_cluster
from tests.e2e.controlplane.images import images
from tests.e2e.controlplane.pod_metrics import PodMetrics
from tests.e2e.controlplane.processes import Options
from tests.e2e.support.installed import installed_adapter, values_for
from tests.helm.chart import NAME
from tests.support.prometheus import ScrapedPrometheus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.e2e.controlplane.client import Document

CHECKOUT: Final = Path(__file__).resolve().parents[1]
SYNC_SECONDS: Final = 15.0
"""How often kube-controller-manager looks at an HPA by default."""
REPLICAS: Final = 2
PATIENCE_SECONDS: Final = 120.0
LISTS: Final = ("/apis/custom.metrics.k8s.io/v1beta1", "/apis/custom.metrics.k8s.io/v1beta2")
_COUNTED: Final = re.compile(
    r'prometheus_http_requests_total\{code="\d+",handler="(/api/v1/query|/api/v1/series)"\} (\S+)'
)
_HELM_SECONDS: Final = 1200.0


class NotPreparedError(Exception):
    """A program or file of the cluster is not on this machine; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The cluster around the adapter, the metrics of its pods, and Prometheus."""

    cluster: Cluster
    metrics: PodMetrics
    prometheus: ScrapedPrometheus

    def asked(self) -> dict[str, int]:
        """Return how many requests Prometheus has counted, by handler."""
        text = self._told("/metrics").decode()
        counted = dict.fromkeys(("/api/v1/query", "/api/v1/series"), 0)
        for handler, value in _COUNTED.findall(text):
            counted[handler] += int(float(value))
        return counted

    def prometheus_version(self) -> str:
        """Return the version that Prometheus reports."""
        return str(json.loads(self._told("/api/v1/status/buildinfo"))["data"]["version"])

    def _told(self, path: str) -> bytes:
        url = f"{self.prometheus.url}{path}"
        with urllib.request.urlopen(url, timeout=30.0) as response:  # noqa: S310 - an address of ours
            body: bytes = response.read()
        return body


@dataclass(frozen=True, slots=True)
class Installed:
    """The adapter's pods, all of which are Ready."""

    namespace: str
    pods: tuple[Document, ...]

    @property
    def account(self) -> str:
        """The user name under which the API server knows the pods."""
        return f"system:serviceaccount:{self.namespace}:{NAME}"

    def usage(self) -> Usage:
        """Return the processor time and memory that the processes of all pods take together."""
        found = [usage(process_of(pod)) for pod in self.pods]
        return Usage(
            cpu_seconds=round(sum(one.cpu_seconds for one in found), 2),
            rss_mib=round(sum(one.rss_mib for one in found), 1),
            peak_mib=round(sum(one.peak_mib for one in found), 1),
            pss_mib=round(sum(one.pss_mib for one in found), 1),
        )


def enter_network() -> None:
    """Move this process, which must not have threads yet, into its own network, and find Helm. Raises NotPreparedError.

    The control plane is not built here: `make e2e` does that, which takes minutes.
    """
    try:
        programs.control_plane()
    except programs.ProgramsError as e:
        raise NotPreparedError(str(e)) from e
    found = subprocess.run(
        [CHECKOUT / ".ci" / "helm"], stdout=subprocess.PIPE, text=True, timeout=_HELM_SECONDS, check=False
    )
    if found.returncode != 0:
        raise NotPreparedError("the chart is installed by Helm, which is not here: run `make e2e` once")
    os.environ["PATH"] = f"{found.stdout.strip()}:{os.environ['PATH']}"
    if why := network.enter().why_loopback:
        raise NotPreparedError(f"the adapter's pods need namespaces, which this machine does not give: {why}")


@contextmanager
def standing(folder: Path) -> Iterator[Stage]:
    """Run a cluster with Kubernetes's own HPA period, and a Prometheus that scrapes every second."""
    with ExitStack() as stack:
        options = Options(hpa_sync_seconds=SYNC_SECONDS)
        cluster = stack.enter_context(
            running_cluster(folder / "cluster", programs.control_plane(), network.current(), options, images())
        )
        metrics = stack.enter_context(PodMetrics.running(cluster.client))
        prometheus = stack.enter_context(
            running_prometheus(
                folder / "prometheus",
                scrape_configs=[metrics.scrape_config()],
                access=Access(host=cluster.network.host),
            )
        )
        yield Stage(cluster, metrics, ScrapedPrometheus(prometheus, metrics.exporter))


@contextmanager
def installed(stage: Stage, rule: Mapping[str, Any]) -> Iterator[Installed]:
    """Install the chart with one rule for Pods metrics, and uninstall it later; yields when its APIs are Available."""
    others = {"rules": {"custom": [rule]}, "metricsRelistInterval": "10s"}
    with installed_adapter(stage.cluster, values_for(stage.prometheus, REPLICAS) | others) as adapter:
        yield Installed(adapter.namespace, tuple(adapter.wait_until_ready()))
