"""An installed adapter, a pod with a metric, and the ways to ask for it: through the API server, and directly."""

from __future__ import annotations

import base64
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tests.e2e.controlplane.pod_metrics import each
from tests.e2e.support.installed import CUSTOM, InstalledAdapter, installed_adapter, namespace_of_its_own, values_for
from tests.e2e.support.plain_client import PlainClient
from tests.helm.chart import NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from demo.machine.certificates import KeyPair
    from tests.e2e.controlplane.client import Document, Reply
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.support.prometheus import ScrapedPrometheus

METRIC: Final = "connections"
VALUE: Final = "7"
PATIENCE_SECONDS: Final = 120.0
"""How long a wait for the adapter may take: its start takes seconds, and on a busy machine many."""

_PODS: Final = "web"
PORT: Final = 6443
_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class AskedAdapter:
    """An installed adapter that knows the metric of one pod in the namespace `shop`."""

    installed: InstalledAdapter
    shop: str

    @property
    def cluster(self) -> Cluster:
        """Return the cluster in which the adapter runs."""
        return self.installed.cluster

    @property
    def metric_path(self) -> str:
        """Return the path of the metric of all pods of the shop."""
        return f"{CUSTOM}/namespaces/{self.shop}/pods/*/{METRIC}"

    def allow(self, subject: Mapping[str, str]) -> None:
        """Allow an RBAC subject to read the metric of the shop's pods, and nothing else."""
        name = f"reader-{os.urandom(3).hex()}"
        common = {"apiVersion": f"{_RBAC}/v1", "metadata": {"name": name, "namespace": self.shop}}
        rule = {"apiGroups": ["custom.metrics.k8s.io"], "resources": [f"pods/{METRIC}"], "verbs": ["get"]}
        reference = {"apiGroup": _RBAC, "kind": "Role", "name": name}
        self.cluster.apply(
            {**common, "kind": "Role", "rules": [rule]},
            {**common, "kind": "RoleBinding", "roleRef": reference, "subjects": [dict(subject)]},
        )

    def reader(self, name: str) -> KeyPair:
        """Return the certificate of a user that may read the metric, once the API server knows of this right."""
        self.allow({"apiGroup": _RBAC, "kind": "User", "name": name})
        pair = self.cluster.plane.authorities.caller(name)
        client = self.through_the_api_server(pair=pair)
        self.cluster.wait_for("the right", lambda: client.get(self.metric_path).status != 403)
        return pair

    def through_the_api_server(self, *, pair: KeyPair | None = None, token: str | None = None) -> PlainClient:
        """Return a client whose requests the API server forwards."""
        url = urlsplit(self.cluster.url)
        assert url.hostname
        return PlainClient(url.hostname, url.port or 443, self.cluster.ca_file.read_text(), pair=pair, token=token)

    def directly(self, pod: Document, *, pair: KeyPair | None = None, token: str | None = None) -> PlainClient:
        """Return a client that calls one replica, and verifies its certificate as the API server does."""
        service = f"{NAME}.{self.installed.namespace}.svc"
        return PlainClient(pod["status"]["podIP"], PORT, self.authority(), name=service, pair=pair, token=token)

    def authority(self) -> str:
        """Return the published CAs of the serving certificate in PEM."""
        namespace = self.installed.namespace
        secret = self.cluster.client.get(f"/api/v1/namespaces/{namespace}/secrets/{NAME}-serving")
        return base64.b64decode(secret["data"]["ca.crt"]).decode()


def wrong_with(reply: Reply) -> str | None:
    """Return why the answer is not the metric's right value; None if it is."""
    if reply.status != 200:
        return f"{reply.status} {reply.body[:300].decode(errors='replace').strip()}"
    values = [item["value"] for item in reply.document["items"]]
    return None if values == [VALUE] else f"values {values}"


@contextmanager
def asked_adapter(
    cluster: Cluster,
    pod_metrics: PodMetrics,
    prometheus: ScrapedPrometheus,
    replicas: int,
    *arguments: str,
    values: Mapping[str, Any] | None = None,
) -> Iterator[AskedAdapter]:
    """Install the adapter with these values of the chart, once Prometheus has the metric.

    Yields when every replica answers with its value.
    """
    with namespace_of_its_own(cluster, "shop") as shop:
        cluster.apply(_ordinary_pod(shop))
        pod_metrics.of_pods(METRIC, shop, f"app={_PODS}", each(float(VALUE)))
        series = f'{METRIC}{{namespace="{shop}"}}'
        cluster.wait_for("the series", lambda: prometheus.query(series))
        given = values_for(prometheus, replicas, *arguments) | dict(values or {})
        try:
            with installed_adapter(cluster, given) as installed:
                adapter = AskedAdapter(installed, shop)
                cluster.wait_for("the value", lambda: _always_right(adapter), PATIENCE_SECONDS)
                yield adapter
        finally:
            pod_metrics.forget_pods(METRIC, shop, f"app={_PODS}")


def _always_right(adapter: AskedAdapter) -> bool:
    """Return whether all replicas answer; the API server picks one of them for each new connection."""
    client = adapter.cluster.client
    return all(wrong_with(client.ask("GET", adapter.metric_path)) is None for _ in range(20))


def _ordinary_pod(namespace: str) -> Document:
    labels = {"app": _PODS}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "shop/web:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": _PODS, "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
