"""`metrics.k8s.io` without metrics-server: `kubectl top`, HPAs on CPU and memory, and the owner of the API.

Rules and series are as in kube-prometheus, except for the window: it is five seconds, with a scrape every second. The
controller uses no value of a new pod until the pod has been Ready for a whole window.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from adapter.commands.doctor.command import CALL_SECONDS, DOCTOR, doctor_settings, run_all_checks
from adapter.foundation.reports.lines import CheckStatus
from adapter.foundation.service.flags.parsing import parse_flags
from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from tests.e2e.controlplane.cluster import KubectlError
from tests.e2e.controlplane.pod_metrics import Work, each, shared
from tests.e2e.support.asked_adapter import PORT
from tests.e2e.support.autoscalers import Autoscaler, Autoscalers, resource_metric
from tests.e2e.support.installed import (
    REGISTERED,
    RESOURCE,
    RESOURCE_API,
    RULES,
    InstalledAdapter,
    installed_adapter,
    namespace_of_its_own,
    values_for,
)
from tests.e2e.support.scraping import reconfigured
from tests.helm.cases import resource_rules
from tests.helm.chart import CHART, NAME, HelmError, helm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from adapter.foundation.reports.lines import Line
    from demo.machine.prometheus import PrometheusProcess
    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics, Values
    from tests.support.prometheus import ScrapedPrometheus

pytestmark = [pytest.mark.needs_pods, pytest.mark.timeout(300)]

WINDOW: Final = "5s"
MI: Final = 2**20
CPU: Final = "container_cpu_usage_seconds_total"
MEMORY: Final = "container_memory_working_set_bytes"
SERIES: Final = (CPU, MEMORY, "node_cpu_seconds_total", "node_memory_MemAvailable_bytes")
"""One series of each query."""
OTHER_SERVICE: Final = {"namespace": "kube-system", "name": "metrics-server", "port": 443}
LOOK_SOON: Final = "--serving-certificate-life=5m"
"""With this flag, the adapter checks its APIServices every three seconds instead of every fifteen."""
_CROSS_CHECKED: Final = timedelta(seconds=30)
"""The age from which a query counts as the adapter's check of its own plans."""


def of_metrics_server() -> Document:
    """Return the registration of another server, as its own manifest makes it."""
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": RESOURCE_API, "labels": {"k8s-app": "metrics-server"}},
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": dict(OTHER_SERVICE),
        },
    }


def registered(cluster: Cluster) -> tuple[Any, ...]:
    """Return what clients have written into the APIService, without the status, which the API server writes."""
    found = cluster.client.get(f"{REGISTERED}/{RESOURCE_API}")
    return found["metadata"].get("labels"), found["metadata"].get("annotations"), found["spec"]


def values(prometheus: ScrapedPrometheus, **rules: object) -> dict[str, Any]:
    """Return the chart's values with these rules beside the suite's own."""
    return values_for(prometheus, 1, LOOK_SOON) | {"rules": RULES | rules}


def test_an_apiservice_of_another_server_is_not_changed(cluster: Cluster, prometheus: ScrapedPrometheus) -> None:
    cluster.client.create(REGISTERED, of_metrics_server())
    try:
        before = registered(cluster)
        given = values(prometheus, resource=resource_rules(WINDOW)) | {"apiServices": {"force": True}}
        for more in ((), ("--take-ownership",)):
            command = ("install", "tidewatch", str(CHART), "--namespace", "default", *more)
            with pytest.raises(HelmError) as refused:
                helm(*command, values=given, kubeconfig=cluster.kubeconfig)
            assert f"{RESOURCE_API} belongs to the service kube-system/metrics-server, " in str(refused.value)
            assert "remove that server first" in str(refused.value)
            assert "rules.resource={}" in str(refused.value)
        assert registered(cluster) == before
        with installed_adapter(cluster, values(prometheus)) as adapter:
            account = f"system:serviceaccount:{adapter.namespace}:{NAME}"
            own = [event.uri for event in cluster.audit_events() if event.user == account]
        assert any("apiservices/" in uri for uri in own)
        assert [uri for uri in own if RESOURCE_API in uri or uri.endswith("apiservices")] == []
        assert registered(cluster) == before
    finally:
        cluster.client.delete(f"{REGISTERED}/{RESOURCE_API}")


@dataclass(slots=True)
class Shop:
    """Three Deployments, and what their containers and the node use."""

    cluster: Cluster
    metrics: PodMetrics
    namespace: str
    stack: ExitStack
    node: str = ""
    web: Work = field(default_factory=lambda: Work(1.0))
    """The CPU that the Deployment web takes, in cores."""

    def __post_init__(self) -> None:
        (node,) = self.cluster.client.items("/api/v1/nodes")
        self.node = node["metadata"]["name"]

    def export(self, app: str, metric: str, values_: Values, container: str) -> None:
        """Export for each pod of a Deployment a series of a container, and one of the whole pod as cAdvisor does."""
        of_pods = (metric, self.namespace, f"app={app}")
        for labels, given in (({"container": container}, values_), ({"id": "/kubepods"}, each(1e12))):
            self.metrics.of_pods(*of_pods, given, **labels)
            self.stack.callback(self.metrics.forget_pods, *of_pods, **labels)

    def export_node(self) -> None:
        """Let the node use two cores and 2 of 8 GiB."""
        busy, idle = Work(2.0), Work(998.0)
        self.set("node_cpu_seconds_total", lambda: busy(["node"])["node"], mode="user")
        self.set("node_cpu_seconds_total", lambda: idle(["node"])["node"], mode="idle")
        self.set("node_memory_MemTotal_bytes", 8192.0 * MI)
        self.set("node_memory_MemAvailable_bytes", 6144.0 * MI)

    def set(self, metric: str, value: Any, **labels: str) -> None:  # noqa: ANN401 - as PodMetrics.set takes it
        """Export one series of the node."""
        self.metrics.set(metric, value, instance=self.node, **labels)
        self.stack.callback(self.metrics.set, metric, None, instance=self.node, **labels)

    def top(self, *arguments: str, **options: Any) -> list[list[str]]:  # noqa: ANN401 - as Cluster.kubectl takes them
        """Return the cells of what `kubectl top` prints."""
        return [
            line.split() for line in self.cluster.kubectl("top", *arguments, "--no-headers", **options).splitlines()
        ]


@pytest.fixture(scope="module")
def adapter(cluster: Cluster, prometheus: ScrapedPrometheus) -> Iterator[InstalledAdapter]:
    with installed_adapter(cluster, values(prometheus, resource=resource_rules(WINDOW))) as adapter:
        yield adapter


@pytest.fixture(scope="module")
def shop(cluster: Cluster, adapter: InstalledAdapter, pod_metrics: PodMetrics) -> Iterator[Shop]:
    assert adapter.answers()
    with ExitStack() as stack:
        namespace = stack.enter_context(namespace_of_its_own(cluster, "top"))
        shop = Shop(cluster, pod_metrics, namespace, stack)
        cluster.apply(two_containers(namespace))
        shop.export_node()
        shop.export("pair", CPU, Work(0.3), "main")
        shop.export("pair", MEMORY, each(48.0 * MI), "main")
        shop.export("pair", CPU, Work(0.1), "proxy")
        shop.export("pair", MEMORY, each(16.0 * MI), "proxy")
        cluster.wait_until_ready(namespace, "pair")
        cluster.wait_for("its values", lambda: listed(cluster, namespace, "app=pair"))
        cluster.wait_for("the node's", lambda: cluster.client.items(f"{RESOURCE}/nodes"))
        yield shop


def two_containers(namespace: str) -> Document:
    labels = {"app": "pair"}
    containers = [{"name": name, "image": "shop/web:1"} for name in ("main", "proxy")]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "pair", "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


def listed(cluster: Cluster, namespace: str, selector: str) -> list[Document]:
    return cluster.client.items(f"{RESOURCE}/namespaces/{namespace}/pods", labelSelector=selector)


def with_cores(cells: list[str], index: int) -> list[object]:
    """Return the cells, with the one at the index converted from millicores to cores."""
    assert cells[index].endswith("m"), cells
    return [*cells[:index], int(cells[index][:-1]) / 1000, *cells[index + 1 :]]


def about(amount: float) -> object:
    """Return a number that equals a measured rate: a counter is written at most four times between two scrapes."""
    return pytest.approx(amount, rel=0.3)


def test_kubectl_explains_what_pods_and_nodes_use(cluster: Cluster, adapter: InstalledAdapter) -> None:
    """Once the API server has the schemas of a group in both formats, it logs no complaint about them."""
    assert adapter.answers()

    def explained(what: str) -> str:
        try:
            return cluster.kubectl("explain", what)
        except KubectlError as error:
            return str(error)

    wanted = {f"apis/{group}/{version}" for version, _, group in (api.partition(".") for api in adapter.apis)}

    def missing() -> set[str]:
        old = json.loads(cluster.kubectl("get", "--raw", "/openapi/v2"))["paths"]
        new = json.loads(cluster.kubectl("get", "--raw", "/openapi/v3"))["paths"]
        return {one for one in wanted if one not in new or not any(path.startswith(f"/{one}/") for path in old)}

    cluster.wait_for("the schemas of all groups", lambda: not missing(), seconds=150.0, why_not=missing)
    cluster.wait_for("kubectl explain", lambda: "<[]ContainerMetrics>" in explained("podmetrics"))
    assert "Usage of each container." in explained("podmetrics.containers")
    assert "NodeMetrics" in explained("nodemetrics")


def test_kubectl_top_shows_pods_and_their_containers(cluster: Cluster, shop: Shop) -> None:
    (pod,) = (one["metadata"]["name"] for one in cluster.pods(shop.namespace, "app=pair"))

    def of_pods() -> list[list[object]]:
        return [with_cores(cells, 1) for cells in shop.top("pods", "--namespace", shop.namespace)]

    def of_containers() -> list[list[object]]:
        of_all = shop.top("pods", "--all-namespaces", "--containers")
        return [with_cores(cells, 3) for cells in of_all if cells[0] == shop.namespace]

    cluster.wait_for("the pod", lambda: of_pods() == [[pod, about(0.4), "64Mi"]], why_not=of_pods)
    expected = [[shop.namespace, pod, "main", about(0.3), "48Mi"], [shop.namespace, pod, "proxy", about(0.1), "16Mi"]]
    cluster.wait_for("its containers", lambda: of_containers() == expected, why_not=of_containers)


def test_kubectl_top_shows_nodes(cluster: Cluster, shop: Shop) -> None:
    def of_nodes() -> list[list[object]]:
        return [with_cores([name, cpu, memory], 1) for name, cpu, _, memory, _ in shop.top("nodes")]

    cluster.wait_for("the node", lambda: of_nodes() == [[shop.node, about(2.0), "2048Mi"]], why_not=of_nodes)


def test_kubectl_get_shows_tables(cluster: Cluster, shop: Shop) -> None:
    for kind in ("podmetrics", "pods.metrics.k8s.io"):
        head, row = cluster.kubectl("get", kind, "--namespace", shop.namespace).splitlines()
        assert head.split() == ["NAME", "CPU", "MEMORY", "WINDOW"]
        assert row.split()[2:] == ["64Mi", WINDOW]
    head, row = cluster.kubectl("get", "nodes.metrics.k8s.io").splitlines()
    assert (head.split()[0], row.split()[0], row.split()[2:]) == ("NAME", shop.node, ["2Gi", WINDOW])


def test_viewers_of_a_namespace_may_use_kubectl_top_only_there(cluster: Cluster, shop: Shop) -> None:
    viewer = cluster.user("top-viewer")
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "viewer", "namespace": shop.namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": viewer.name}],
    }
    cluster.apply(binding)
    path = f"{RESOURCE}/namespaces/{shop.namespace}/pods"
    cluster.wait_for("the right", lambda: viewer.client.ask("GET", path).status == 200)
    assert [cells[2] for cells in shop.top("pods", "--namespace", shop.namespace, user=viewer)] == ["64Mi"]
    for other in (f"{RESOURCE}/namespaces/default/pods", f"{RESOURCE}/pods", f"{RESOURCE}/nodes"):
        assert viewer.client.ask("GET", other).status == 403


@contextmanager
def query_log(prometheus: PrometheusProcess) -> Iterator[Path]:
    """Let Prometheus log each query."""
    log = prometheus.folder / "queries.log"
    with reconfigured(prometheus, lambda before: {**before, "global": before["global"] | {"query_log_file": str(log)}}):
        yield log


def asked_for_now(log: Path, series: str) -> list[str]:
    """Return the queries for a series in their order, without checks of past moments."""
    found = []
    for line in log.read_text().splitlines() if log.exists() else ():
        entry = json.loads(line)
        parameters = entry["params"]
        age = datetime.fromisoformat(entry.get("ts") or entry["time"]) - datetime.fromisoformat(parameters["end"])
        if series in parameters["query"] and age < _CROSS_CHECKED:
            found.append(parameters["query"])
    return found


def test_one_query_of_each_kind_is_enough_for_all_namespaces(
    cluster: Cluster, shop: Shop, prometheus: ScrapedPrometheus
) -> None:
    paths = [f"{RESOURCE}/namespaces/{name}/pods" for name in (shop.namespace, "default", "kube-system", "kube-public")]
    with query_log(prometheus.prometheus) as log:

        def came_again() -> bool:
            for path in (*paths, f"{RESOURCE}/pods", f"{RESOURCE}/nodes"):
                cluster.client.get(path)
            return all(len(asked_for_now(log, series)) >= 3 for series in SERIES)

        cluster.wait_for("three queries of each kind", came_again)
        asked = {series: set(asked_for_now(log, series)) for series in SERIES}
    assert {series: len(queries) for series, queries in asked.items()} == dict.fromkeys(SERIES, 1)
    assert not any("namespace=" in query for queries in asked.values() for query in queries)


def test_hpas_on_cpu_and_memory_follow_the_load(cluster: Cluster, shop: Shop, pod_metrics: PodMetrics) -> None:
    scalers = Autoscalers(
        cluster,
        shop.namespace,
        Autoscaler(shop.namespace, "web", resource_metric("cpu", averageUtilization=50), requests={"cpu": "1"}),
        Autoscaler(shop.namespace, "cache", resource_metric("memory", averageValue="100Mi")),
    )

    def load(busy_cores: float, mebibytes: float) -> None:
        shop.web.per_second = busy_cores
        pod_metrics.of_pods(MEMORY, shop.namespace, "app=cache", shared(mebibytes * MI), container="main")

    scalers.create_deployments()
    shop.export("web", CPU, shop.web, "main")
    shop.export("web", MEMORY, each(10.0 * MI), "main")
    shop.export("cache", CPU, Work(0.1), "main")
    shop.export("cache", MEMORY, shared(200.0 * MI), "main")
    scalers.wait_for_answers()
    scalers.create_hpas()
    # Half a pod's worth above and below: a rate is not exact, and the size is rounded up.
    load(1.75, 350.0)
    scalers.wait_for_sizes(web=4, cache=4)
    load(0.75, 150.0)
    scalers.wait_for_sizes(web=2, cache=2)
    for name in scalers.all:
        assert scalers.conditions(name)["ScalingActive"] == ("True", "ValidMetricFound")
    assert {event.code for events in scalers.syncs.values() for event in events} == {200}


def examined_by_doctor(adapter: InstalledAdapter, pod: Document, folder: Path) -> dict[str, Line]:
    """Return the findings of `tidewatch-adapter doctor`, by name."""
    config = str(adapter.cluster.kubeconfig)
    (folder / "rules.yaml").write_text(yaml.safe_dump({"resourceRules": resource_rules(WINDOW)}))
    address = f"{pod['status']['podIP']}:{PORT}"
    flags = (f"--service={adapter.namespace}/{NAME}", f"--endpoint={address}", f"--config={folder / 'rules.yaml'}")
    client = ObjectClient(KubernetesClient(from_kubeconfig(config)), CALL_SECONDS)
    return {line.name: line for line in run_all_checks(client, doctor_settings(parse_flags(DOCTOR, flags, {})))}


def test_an_apiservice_that_another_server_takes_over_is_left_and_logged(
    cluster: Cluster, shop: Shop, adapter: InstalledAdapter, tmp_path: Path
) -> None:
    """Somebody installs metrics-server over the adapter, as `kubectl apply` of its manifest does."""
    assert shop.cluster is cluster
    (pod,) = adapter.wait_until_ready()
    ours = examined_by_doctor(adapter, pod, tmp_path)
    assert ours[f"owner/{RESOURCE_API}"].status is ours[f"request/{RESOURCE_API}"].status is CheckStatus.OK
    # Its life is short here, so it ends soon.
    assert ours[f"certificate/{RESOURCE_API}"].message.startswith("it is trusted")
    theirs = of_metrics_server()
    theirs["spec"] |= {"caBundle": None}
    cluster.client.merge(f"{REGISTERED}/{RESOURCE_API}", theirs)
    said = f"apiservice {RESOURCE_API}: it belongs to the Service kube-system/metrics-server, not to"
    cluster.wait_for("the adapter to see it", lambda: said in cluster.pod_log(pod))
    _, _, spec = registered(cluster)
    assert spec == of_metrics_server()["spec"]
    line = examined_by_doctor(adapter, pod, tmp_path)[f"owner/{RESOURCE_API}"]
    assert line.status is CheckStatus.WARNING
    assert "it belongs to kube-system/metrics-server" in line.message
    command = ("upgrade", "tidewatch", str(CHART), "--reuse-values", "--namespace", adapter.namespace)
    with pytest.raises(HelmError, match="belongs to the service kube-system/metrics-server"):
        helm(*command, "--take-ownership", kubeconfig=cluster.kubeconfig)
