"""Complaints of users of load-aware schedulers that the queries and the names of nodes resolve.

Names end with the project and the number of its issue. The real Prometheus has no recording rules.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from adapter.foundation.cluster.values.state import NodeAddress
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.names.mapping import series_mapper
from adapter.nodes.queries.refresher import SampleRefresher
from tests.adapter.nodes.names.cluster_nodes import cluster_node, internal
from tests.adapter.nodes.queries.exporters import NodeExporter, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.queries.refresh_results import RefreshResult
    from tests.support.prometheus import ScrapedPrometheus

AT = int(time.time() // 240) * 240 - 7200
START = AT - 1200.0
STACK = {"job": "node-exporter", "namespace": "monitoring", "container": "node-exporter", "endpoint": "http-metrics"}
EXPORTERS = (
    NodeExporter("10.0.0.1:9100", labels={**STACK, "pod": "exporter-a"}, devices=True),
    NodeExporter("10.0.0.2:9100", labels={**STACK, "pod": "exporter-b"}, is_scraped=lambda at: at < AT - 300),
    NodeExporter("10.0.0.2:9100", labels={**STACK, "pod": "exporter-c"}, is_scraped=lambda at: at >= AT - 300),
    NodeExporter("10.0.0.2:9100", labels={**STACK, "pod": "exporter-b", "job": "twice"}),
    NodeExporter("10.0.0.3:9100", labels={"cluster": "other"}, cpus=1),
)
NODES = (cluster_node("ip-10-0-0-1.ec2.internal", internal("10.0.0.1")), cluster_node("worker-2", internal("10.0.0.2")))


@pytest.fixture(scope="module")
def scraped(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    return start_prometheus(history=text_of(EXPORTERS, START, AT))


@pytest.fixture(scope="module")
def client(scraped: ScrapedPrometheus) -> Iterator[PrometheusClient]:
    with PrometheusClient(PrometheusSettings(scraped.url)) as client:
        yield client


@pytest.fixture(scope="module")
def result(client: PrometheusClient) -> RefreshResult:
    return SampleRefresher(client, SchedulingSettings()).refresh(AT, None, NODES)


def samples(result: RefreshResult, node: str, resource: LoadResource = LoadResource.CPU) -> Floats:
    grid = result.samples.grids[resource]
    found: Floats = grid.values[grid.nodes.index(node)][-60:]
    return found


def test_addresses_of_the_helm_chart_s_exporters_are_mapped_to_nodes__scheduler_plugins_880(
    result: RefreshResult,
) -> None:
    assert not np.isnan(samples(result, "worker-2")).any()
    assert [one.instance for one in result.unmapped if not one.refused_for] == ["10.0.0.3:9100"]
    # The same exporter scraped by a second job is not averaged with the first.
    assert [dict(one.labels)["job"] for one in result.unmapped if one.refused_for] == ["twice"]


def test_an_instance_that_is_an_address_needs_no_relabeling__helm_charts_4360(result: RefreshResult) -> None:
    assert not np.isnan(samples(result, "ip-10-0-0-1.ec2.internal")).any()


def test_the_address_of_a_node_is_looked_up_in_the_node_object__crane_7() -> None:
    node = cluster_node("a", NodeAddress("ExternalIP", "192.0.2.1"), internal("10.0.0.1"), internal("fd00::1"))
    mapper = series_mapper((node,), "auto")
    assert [mapper.node_of({"instance": text}) for text in ("192.0.2.1:9100", "10.0.0.1", "[fd00::1]:9100")] == [
        "a"
    ] * 3


def test_a_node_is_found_by_its_name_as_by_its_address__crane_8() -> None:
    mapper = series_mapper(NODES, "auto")
    assert {mapper.node_of({"instance": text}) for text in ("worker-2", "10.0.0.2:9100")} == {"worker-2"}


def test_a_query_may_return_the_name_of_the_node__crane_20(client: PrometheusClient) -> None:
    own = 'label_replace(vector(0.3), "node", "worker-2", "", "")'
    settings = SchedulingSettings(queries={LoadResource.CPU: own})
    result = SampleRefresher(client, settings).refresh(AT, None, NODES)
    assert samples(result, "worker-2") == pytest.approx(0.3)


@pytest.mark.parametrize("name", ["worker-2.example.com", "WORKER-2", "worker-2:9100"])
def test_full_and_short_host_names_are_one_node__load_watcher_35(name: str) -> None:
    assert series_mapper(NODES, "auto").node_of({"instance": name}) == "worker-2"


def test_metrics_can_be_chosen__load_watcher_51(client: PrometheusClient) -> None:
    own = "avg by (instance) (node_memory_MemAvailable_bytes / 2000)"
    result = SampleRefresher(client, SchedulingSettings(queries={LoadResource.MEMORY: own})).refresh(AT, None, NODES)
    assert samples(result, "worker-2", LoadResource.MEMORY) == pytest.approx(0.2)


def test_a_short_load_is_not_averaged_away__load_watcher_28(result: RefreshResult) -> None:
    found = samples(result, "worker-2")
    assert np.max(found) == pytest.approx(0.9, abs=0.01)
    assert np.std(found) == pytest.approx(0.4, rel=0.2)


def test_the_mean_agrees_with_a_rate_over_the_window__load_watcher_71(
    scraped: ScrapedPrometheus, result: RefreshResult
) -> None:
    own = (
        '1 - avg by (instance) (sum without (mode) (rate(node_cpu_seconds_total{instance="10.0.0.1:9100",'
        'mode=~"idle|iowait|steal"}[15m])))'
    )
    monitored = float(scraped.query(own, at=AT)[0]["value"][1])
    assert np.mean(samples(result, "ip-10-0-0-1.ec2.internal")) == pytest.approx(monitored, abs=0.01)


def test_network_load_is_a_share_of_the_speed__load_watcher_58(result: RefreshResult) -> None:
    found = samples(result, "ip-10-0-0-1.ec2.internal", LoadResource.NETWORK)
    assert found == pytest.approx(0.5, abs=0.01)


def test_one_cluster_of_a_shared_store_is_chosen_by_matchers__load_watcher_52(client: PrometheusClient) -> None:
    settings = SchedulingSettings(matchers={"cluster": "other"})
    result = SampleRefresher(client, settings).refresh(AT, None, None)
    assert result.samples.grids[LoadResource.CPU].nodes == ("10.0.0.3",)


def test_no_recording_rule_of_any_distribution_is_needed__load_watcher_65(
    scraped: ScrapedPrometheus, result: RefreshResult
) -> None:
    assert scraped.query('count({__name__=~".+:.+"})', at=AT) == []
    assert not result.failures
    assert set(result.samples.grids) == set(LoadResource)


def test_standard_deviation_has_samples_for_each_window__load_watcher_10(result: RefreshResult) -> None:
    found = samples(result, "worker-2")
    assert [np.count_nonzero(~np.isnan(found[-steps:])) for steps in (60, 40, 20)] == [60, 40, 20]


def test_a_duplicate_exporter_breaks_no_query__kubernetes_mixin_119(result: RefreshResult) -> None:
    assert not result.failures
    assert 0.09 <= np.min(samples(result, "worker-2")) <= np.max(samples(result, "worker-2")) <= 0.91
    assert samples(result, "worker-2", LoadResource.MEMORY) == pytest.approx(0.6)


def test_gpus_are_measured_beside_the_rest_of_their_node__scheduler_plugins_422(result: RefreshResult) -> None:
    found = samples(result, "ip-10-0-0-1.ec2.internal", LoadResource.GPU)
    assert found == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("query", "failed"), [("mem_usage_avg_5m{", {LoadResource.MEMORY}), ("mem_usage_avg_5m", set())]
)
def test_a_missing_metric_affects_no_other__crane_39(
    client: PrometheusClient, query: str, failed: set[LoadResource]
) -> None:
    result = SampleRefresher(client, SchedulingSettings(queries={LoadResource.MEMORY: query})).refresh(AT, None, NODES)
    assert set(result.failures) == failed
    memory = result.samples.grids.get(LoadResource.MEMORY)
    assert memory is None or np.isnan(memory.values).all()
    assert not np.isnan(samples(result, "worker-2")).any()
