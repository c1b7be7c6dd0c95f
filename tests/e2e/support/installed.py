"""The adapter as its users have it: installed by the real Helm from the chart, run as rendered, aggregated.

The names of APIServices are cluster-wide, so there is one release at a time: each module of tests has its own fixture
around `installed_adapter`, which uninstalls everything before the next module begins.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.helm.chart import CHART, NAME, helm
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.support.prometheus import ScrapedPrometheus

APIS: Final = ("v1beta1.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io")
RESOURCE_API: Final = "v1beta1.metrics.k8s.io"
"""The APIService of a release with resource rules."""
CUSTOM: Final = "/apis/custom.metrics.k8s.io/v1beta2"
EXTERNAL: Final = "/apis/external.metrics.k8s.io/v1beta1"
RESOURCE: Final = "/apis/metrics.k8s.io/v1beta1"
REGISTERED: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
_RELEASE: Final = "tidewatch"
_START_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class InstalledAdapter:
    """A release of the chart whose APIs answer through the aggregator."""

    cluster: Cluster
    namespace: str
    apis: tuple[str, ...] = APIS
    """The APIServices that the release serves."""

    def upgrade(self, values: Mapping[str, Any]) -> None:
        """Install or change the release; return when the API server has its objects, which is before it runs."""
        options = ("--install", "--namespace", self.namespace)
        helm("upgrade", _RELEASE, str(CHART), *options, values=values, kubeconfig=self.cluster.kubeconfig)

    def wait_until_ready(self) -> list[Document]:
        """Wait for all pods of the newest rollout and return them."""
        return self.cluster.wait_until_ready(self.namespace, NAME, _START_SECONDS)

    def restart(self) -> None:
        """Replace all pods as `kubectl rollout restart` does; return when the new ones are Ready."""
        self.cluster.kubectl("rollout", "restart", f"deployment/{NAME}", "--namespace", self.namespace)
        self.wait_until_ready()

    def unavailable(self) -> dict[str, object]:
        """Return the APIServices that are not Available, each with the condition that says why."""
        found = {name: self._availability(name) for name in self.apis}
        return {name: condition for name, condition in found.items() if condition.get("status") != "True"}

    def availability(self) -> dict[str, Document]:
        """Return the condition Available of each APIService; empty if it has none yet."""
        return {name: self._availability(name) for name in self.apis}

    def answers(self) -> bool:
        """Return whether each API answers through the aggregator, which verifies the certificate."""
        for name in self.apis:
            version, _, group = name.partition(".")
            self.cluster.client.get(f"/apis/{group}/{version}")
        return True

    def _availability(self, name: str) -> Document:
        status = self.cluster.client.get(f"{REGISTERED}/{name}").get("status", {})
        found = [condition for condition in status.get("conditions") or [] if condition["type"] == "Available"]
        return found[0] if found else {}


@contextmanager
def namespace_of_its_own(cluster: Cluster, prefix: str) -> Iterator[str]:
    """Make a namespace for longer than one test; its deletion begins when the block ends."""
    name = f"{prefix}-{os.urandom(3).hex()}"
    cluster.client.create("/api/v1/namespaces", {"metadata": {"name": name}})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    cluster.wait_for("the namespace's service account", lambda: cluster.client.find(account))
    try:
        yield name
    finally:
        cluster.client.delete(f"/api/v1/namespaces/{name}")


@contextmanager
def installed_adapter(cluster: Cluster, values: Mapping[str, Any]) -> Iterator[InstalledAdapter]:
    """Install the chart with these values in a namespace of its own, and uninstall it after the block.

    Yields when all pods are Ready and every API answers.
    """
    with namespace_of_its_own(cluster, "adapter") as namespace:
        apis = (*APIS, RESOURCE_API) if values["rules"].get("resource") else APIS
        adapter = InstalledAdapter(cluster, namespace, apis)
        try:
            adapter.upgrade(values)
            adapter.wait_until_ready()
            cluster.wait_for("answers of all APIs", adapter.answers, _START_SECONDS)
            cluster.wait_for("the APIServices", lambda: not adapter.unavailable(), _START_SECONDS)
            yield adapter
        finally:
            helm("uninstall", _RELEASE, "--ignore-not-found", "--namespace", namespace, kubeconfig=cluster.kubeconfig)


def values_for(prometheus: ScrapedPrometheus, replicas: int = 1, *arguments: str) -> dict[str, Any]:
    """Return the chart's values for this Prometheus and RULES; `arguments` are further flags of the adapter."""
    url, _, port = prometheus.url.rpartition(":")
    return {
        "replicas": replicas,
        "prometheus": {"url": url, "port": int(port)},
        "rules": RULES,
        "rbac": {"objectKinds": OBJECT_KINDS},
        "extraArguments": list(arguments),
    }


def values_for_recommendations(prometheus: ScrapedPrometheus) -> dict[str, Any]:
    """Return the chart's values with the shipped rules for recommendations, beside the External metrics of RULES."""
    shipped = yaml.safe_load((CHECKOUT / "rules" / "adapter" / "recommendations.yaml").read_text())
    rules = {"custom": shipped["rules"], "external": [*RULES["external"], *shipped["externalRules"]]}
    deployments = {"apiGroups": ["apps"], "resources": ["deployments"]}
    return {**values_for(prometheus), "rules": rules, "rbac": {"objectKinds": [deployments]}}


def _rule(series: str, query: str, resource: str = "", group: str = "", name: str = "") -> dict[str, Any]:
    """Return a rule about a label that is named after its kind of objects.

    The rule spells its metric's name out, so the metric is served before its series exist.
    """
    overrides = {"namespace": {"resource": "namespace"}}
    if resource:
        overrides[resource] = {"group": group, "resource": resource} if group else {"resource": resource}
    return {
        "seriesQuery": series,
        "resources": {"overrides": overrides},
        "name": {"as": name or series.partition("{")[0]},
        "metricsQuery": query,
    }


_SUM: Final = "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})"
OBJECT_KINDS: Final = [
    {"apiGroups": [""], "resources": ["services"]},
    {"apiGroups": ["apps"], "resources": ["deployments"]},
]
RULES: Final[dict[str, Any]] = {
    "custom": [
        _rule('connections{namespace!="",pod!=""}', _SUM, "pod"),
        _rule(
            'messages_total{namespace!="",pod!=""}',
            "sum by (<<.GroupBy>>) (rate(<<.Series>>{<<.LabelMatchers>>}[15s]))",
            "pod",
            name="messages_per_second",
        ),
        _rule('requests_in_flight{namespace!="",service!=""}', _SUM, "service"),
        _rule('backlog{namespace!="",deployment!=""}', _SUM, "deployment", "apps"),
        _rule('provisioning{namespace!="",storageclass!=""}', _SUM, "storageclass", "storage.k8s.io"),
    ],
    "external": [_rule('queue_length{namespace!="",queue!=""}', "sum(<<.Series>>{<<.LabelMatchers>>})")],
}
"""Rules for `connections` and `messages_per_second` of pods, `requests_in_flight` of Services, `backlog` of
Deployments, `provisioning` of StorageClasses, which are cluster-scoped, and the External metric `queue_length`."""
