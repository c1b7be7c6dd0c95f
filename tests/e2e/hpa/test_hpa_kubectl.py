"""With kubectl, users soon see the APIs as Available, see values, and wait no longer for discovery than before."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import pytest

from tests.e2e.controlplane.pod_metrics import each
from tests.e2e.support.autoscalers import Autoscaler, Autoscalers, external_metric, object_metric, pods_metric, service
from tests.e2e.support.installed import APIS, CUSTOM, EXTERNAL, InstalledAdapter, installed_adapter, values_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.support.prometheus import ScrapedPrometheus

pytestmark = pytest.mark.needs_pods

AVAILABLE_SECONDS: Final = 30.0
_SLOWER_SECONDS: Final = 1.0
"""More than a busy machine adds, and less than an unanswered request for a group version takes."""


@dataclass(frozen=True, slots=True)
class ApiResources:
    """The output of `kubectl api-resources`, and how long it takes without a cache."""

    kinds: frozenset[str]
    seconds: float


def api_resources(cluster: Cluster) -> ApiResources:
    """Return the shortest of a few runs, which a busy machine disturbs least; each run repeats all requests."""
    seconds: list[float] = []
    printed = ""
    for _ in range(4):
        began = time.monotonic()
        printed = cluster.kubectl("api-resources", "--cached=false")
        seconds.append(time.monotonic() - began)
    return ApiResources(frozenset(printed.splitlines()), min(seconds))


@pytest.fixture(scope="module")
def before(cluster: Cluster) -> ApiResources:
    """Return the output of discovery without an adapter."""
    return api_resources(cluster)


@pytest.fixture(scope="module")
def adapter(cluster: Cluster, prometheus: ScrapedPrometheus, before: ApiResources) -> Iterator[InstalledAdapter]:
    assert before.kinds
    with installed_adapter(cluster, values_for(prometheus)) as adapter:
        yield adapter


def test_the_api_services_are_available_soon_after_the_adapter_has_started(adapter: InstalledAdapter) -> None:
    (pod,) = adapter.wait_until_ready()
    started = at(pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"])
    for name, condition in adapter.availability().items():
        assert condition["status"] == "True", name
        assert at(condition["lastTransitionTime"]) - started <= AVAILABLE_SECONDS, name


def test_discovery_takes_no_longer_than_without_the_adapter(
    cluster: Cluster, adapter: InstalledAdapter, before: ApiResources
) -> None:
    """Metrics are not kinds: the API server's document names the group versions and none of the metrics."""
    assert adapter.answers()
    wanted = {f"{group}/{version}" for version, _, group in (name.partition(".") for name in APIS)}
    cluster.wait_for("the group versions", lambda: wanted <= set(cluster.kubectl("api-versions").split()))
    after = api_resources(cluster)
    assert after.kinds == before.kinds
    assert after.seconds < before.seconds + _SLOWER_SECONDS


def test_kubectl_shows_the_values(
    cluster: Cluster, namespace: str, adapter: InstalledAdapter, pod_metrics: PodMetrics
) -> None:
    assert adapter.answers()
    scalers = Autoscalers(
        cluster,
        namespace,
        Autoscaler(namespace, "web", pods_metric("connections", "100")),
        Autoscaler(namespace, "api", object_metric("requests_in_flight", "Service", "api", value="200")),
        Autoscaler(namespace, "worker", external_metric("queue_length", {"queue": "mail"}, averageValue="10")),
    )
    cluster.apply(service(namespace, "api"))
    scalers.create_deployments()
    pod_metrics.of_pods("connections", namespace, "app=web", each(93.5))
    pod_metrics.set("requests_in_flight", 187, namespace=namespace, service="api")
    pod_metrics.set("queue_length", 19, namespace=namespace, queue="mail")
    scalers.wait_for_answers()
    scalers.create_hpas()

    pods = json.loads(cluster.kubectl("get", "--raw", f"{CUSTOM}/namespaces/{namespace}/pods/*/connections"))
    assert [item["value"] for item in pods["items"]] == ["93500m", "93500m"]
    names = {pod["metadata"]["name"] for pod in cluster.pods(namespace, "app=web")}
    assert {item["describedObject"]["name"] for item in pods["items"]} == names
    queue = f"{EXTERNAL}/namespaces/{namespace}/queue_length?labelSelector=queue%3Dmail"
    assert [item["value"] for item in json.loads(cluster.kubectl("get", "--raw", queue))["items"]] == ["19"]
    shown = {"web": "93500m/100", "api": "187/200", "worker": "9500m/10 (avg)"}
    cluster.wait_for(
        "targets", lambda: targets(cluster, namespace) == shown, why_not=lambda: targets(cluster, namespace)
    )
    pod_metrics.forget_pods("connections", namespace, "app=web")


def test_an_hpa_scales_on_an_object_that_is_in_no_namespace_by_the_series_of_its_own(
    cluster: Cluster, namespace: str, adapter: InstalledAdapter, pod_metrics: PodMetrics
) -> None:
    """The controller requests it within the HPA's namespace, as for every object."""
    assert adapter.answers()
    name = f"fast-{namespace}"
    created = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "example.com/none",
    }
    cluster.apply(created)
    metric = object_metric("provisioning", "StorageClass", name, averageValue="10")
    scalers = Autoscalers(cluster, namespace, Autoscaler(namespace, "worker", metric))
    scalers.create_deployments()
    pod_metrics.set("provisioning", 38, namespace=namespace, storageclass=name)
    pod_metrics.set("provisioning", 1000, namespace="somewhere-else", storageclass=name)
    scalers.wait_for_answers()
    scalers.create_hpas()
    scalers.wait_for_sizes(worker=4)
    whole = json.loads(cluster.kubectl("get", "--raw", f"{CUSTOM}/storageclasses.storage.k8s.io/{name}/provisioning"))
    assert [item["value"] for item in whole["items"]] == ["1038"]
    for place in (namespace, "somewhere-else"):
        pod_metrics.set("provisioning", None, namespace=place, storageclass=name)
    cluster.client.delete(f"/apis/storage.k8s.io/v1/storageclasses/{name}")


def targets(cluster: Cluster, namespace: str) -> dict[str, str]:
    """Return the column TARGETS of `kubectl get hpa`."""
    printed = cluster.kubectl("get", "hpa", "--namespace", namespace).splitlines()
    start, end = printed[0].index("TARGETS"), printed[0].index("MINPODS")
    return {line.split()[0]: line[start:end].strip() for line in printed[1:]}


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
