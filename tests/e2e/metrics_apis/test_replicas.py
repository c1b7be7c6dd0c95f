"""Two replicas serve 30 requests a second through the aggregator while one of them ends, orderly or killed."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Final

import pytest

from tests.e2e.controlplane.cluster import process_of
from tests.e2e.support.asked_adapter import PATIENCE_SECONDS, AskedAdapter, asked_adapter, wrong_with
from tests.e2e.support.figures import state
from tests.e2e.support.scraping import scraped_pods
from tests.e2e.support.steady_load import SteadyLoad, steady_load
from tests.helm.chart import NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.support.prometheus import ScrapedPrometheus

__all__ = ["state"]

pytestmark = pytest.mark.needs_pods

PER_SECOND: Final = 30.0
ENOUGH: Final = 90
"""Right answers after which the system counts as recovered."""
FIRST: Final = 10
"""Right answers after which the load counts as started."""
PASSED_ON_SECONDS: Final = 2.0
"""The time within which the API server itself learns of an endpoint change that the test has seen."""


@pytest.fixture(scope="module")
def adapter(cluster: Cluster, pod_metrics: PodMetrics, prometheus: ScrapedPrometheus) -> Iterator[AskedAdapter]:
    with asked_adapter(cluster, pod_metrics, prometheus, 2) as running:
        yield running


@pytest.fixture
def load(adapter: AskedAdapter) -> Iterator[SteadyLoad]:
    """Yield the stream of requests, which has started when the test begins."""
    client = adapter.through_the_api_server(pair=adapter.reader(f"load-{os.urandom(3).hex()}"))
    with steady_load(lambda: client.get(adapter.metric_path), wrong_with, PER_SECOND) as running:
        answered(adapter, running, FIRST)
        yield running
    client.close()


def answered(adapter: AskedAdapter, load: SteadyLoad, count: int = ENOUGH) -> None:
    """Wait for some right answers from now on."""
    moment = time.monotonic()
    adapter.cluster.wait_for(
        "right answers", lambda: load.right_since(moment) >= count, PATIENCE_SECONDS, why_not=load.report
    )


def gone(adapter: AskedAdapter, pods: list[Document]) -> None:
    """Wait until none of these pods exists any more, including ones that are ending."""
    path = f"/api/v1/namespaces/{adapter.installed.namespace}/pods"
    names = {pod["metadata"]["name"] for pod in pods}

    def rest() -> set[str]:
        return names & {pod["metadata"]["name"] for pod in adapter.cluster.client.items(path)}

    adapter.cluster.wait_for("the end of the old pods", lambda: not rest(), PATIENCE_SECONDS, why_not=rest)


def ready_addresses(adapter: AskedAdapter) -> set[str]:
    """Return the addresses to which the API server sends requests."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{adapter.installed.namespace}/endpointslices"
    slices = adapter.cluster.client.items(path, labelSelector=f"kubernetes.io/service-name={NAME}")
    endpoints = [endpoint for one in slices for endpoint in one["endpoints"] or []]
    return {address for one in endpoints if one["conditions"].get("ready") for address in one["addresses"]}


def restart_count(pod: Document) -> int:
    (status,) = pod["status"]["containerStatuses"]
    return int(status["restartCount"])


def test_prometheus_finds_and_scrapes_each_replica(adapter: AskedAdapter, prometheus: ScrapedPrometheus) -> None:
    names = {pod["metadata"]["name"] for pod in adapter.installed.wait_until_ready()}
    with scraped_pods(adapter.cluster, prometheus.prometheus, adapter.installed.namespace) as job:

        def scraped() -> set[str]:
            return {
                one["metric"]["pod"] for one in prometheus.query(f'tidewatch_adapter_requests_total{{job="{job}"}}')
            }

        adapter.cluster.wait_for("series of both", lambda: scraped() == names, why_not=scraped)


def test_one_of_two_replicas_is_deleted_and_no_request_fails(
    adapter: AskedAdapter, load: SteadyLoad, state: Callable[[str, str], None]
) -> None:
    first, _ = adapter.installed.wait_until_ready()
    path = f"/api/v1/namespaces/{adapter.installed.namespace}/pods/{first['metadata']['name']}"
    adapter.cluster.client.delete(path)
    gone(adapter, [first])
    adapter.installed.wait_until_ready()
    answered(adapter, load)
    state("a replica deleted (SIGTERM)", load.report())
    assert load.failures == []


def test_a_rollout_replaces_both_replicas_and_no_request_fails(
    adapter: AskedAdapter, load: SteadyLoad, state: Callable[[str, str], None]
) -> None:
    before = adapter.installed.wait_until_ready()
    adapter.installed.restart()
    gone(adapter, before)
    answered(adapter, load)
    state("kubectl rollout restart", load.report())
    assert load.failures == []


def test_a_killed_replica_fails_requests_only_until_its_endpoint_is_out(
    adapter: AskedAdapter, load: SteadyLoad, state: Callable[[str, str], None]
) -> None:
    first, _ = adapter.installed.wait_until_ready()
    cluster, address = adapter.cluster, first["status"]["podIP"]
    path = f"/api/v1/namespaces/{adapter.installed.namespace}/pods/{first['metadata']['name']}"
    killed = time.monotonic()
    os.kill(process_of(first), signal.SIGKILL)
    cluster.wait_for("the endpoint's end", lambda: address not in ready_addresses(adapter), PATIENCE_SECONDS)
    out = time.monotonic()
    cluster.wait_for("the endpoint's return", lambda: address in ready_addresses(adapter), PATIENCE_SECONDS)
    back = time.monotonic()
    assert restart_count(cluster.client.get(path)) == restart_count(first) + 1
    answered(adapter, load)
    figure = f"{load.report(killed)}; endpoint out after {out - killed:.1f} s, back after {back - killed:.1f} s"
    state("a replica killed (SIGKILL)", figure)
    assert [one for one in load.failures if one.end < killed or one.start > out + PASSED_ON_SECONDS] == []
