"""The expressions and the refresh, with a real Prometheus."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from adapter.foundation.cluster.values.state import NodeAddress
from adapter.foundation.sources.prometheus.errors import QueryRefusedError
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.queries.expressions import ACCOUNTED_RULE, CPUS, PART_LABEL, RULES, rate_function, resource_query
from adapter.nodes.queries.refresher import SampleRefresher
from tests.adapter.nodes.names.cluster_nodes import cluster_node
from tests.adapter.nodes.queries.exporters import NodeExporter, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.foundation.sources.prometheus.answers.ranges import RangeReader
    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.samples import SampleGrid
    from adapter.nodes.queries.refresh_results import RefreshResult
    from tests.support.prometheus import ScrapedPrometheus

AT = int(time.time() // 240) * 240 - 7200
START = AT - 1200.0

EXPORTERS = (
    NodeExporter("plain:9100"),
    NodeExporter("late:9100", late_seconds=1.0),
    NodeExporter("missed:9100", is_scraped=lambda at: int((at - START) // 15) % 11 != 5),
    NodeExporter("thirty:9100", scrape_seconds=30),
    NodeExporter("sixty:9100", scrape_seconds=60),
    NodeExporter("pair:9100", labels={"replica": "a"}),
    NodeExporter("pair:9100", phase=9.1, labels={"replica": "b"}),
    NodeExporter("restarted:9100", labels={"pod": "a"}, is_scraped=lambda at: at < AT - 400),
    NodeExporter("restarted:9100", labels={"pod": "b"}, is_scraped=lambda at: at >= AT - 390),
    NodeExporter("reset:9100", reset_at=AT - 300.0),
    NodeExporter("stuck:9100", stuck=True),
    NodeExporter("memory:9100", cpus=0),
    NodeExporter("idle:9100", modes=("idle", "iowait", "steal"), memory=False),
    NodeExporter("gap:9100", is_scraped=lambda at: not AT - 600 <= at < AT - 240),
    NodeExporter("10.0.0.7:9100", labels={"job": "node-exporter", "namespace": "monitoring"}),
    NodeExporter("other:9100", labels={"cluster": "b"}),
    NodeExporter("devices:9100", devices=True),
    NodeExporter("ruled:9100", labels={"cluster": "recorded"}),
    # Any exporter may set our own label: two series that differ by it alone must never become one.
    NodeExporter("copies:9100", labels={PART_LABEL: "a"}, cpus=0, memory=False, devices=True),
    NodeExporter("copies:9100", labels={PART_LABEL: "b"}, cpus=0, memory=False, devices=True),
)


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    return start_prometheus(history=text_of(EXPORTERS, START, AT).replace("# EOF", recorded_rules() + "# EOF"))


def recorded_rules() -> str:
    """Return recorded series of one node, whose load differs from its counters so that tests can tell them apart."""
    return "".join(
        f'{rule}{{instance="ruled:9100",cluster="recorded"}} {value} {at}\n'
        for rule, value in ((RULES[LoadResource.CPU], 0.77), (ACCOUNTED_RULE, 1.0))
        for at in range(int(START), AT + 1, 15)
    )


@pytest.fixture(scope="module")
def client(prometheus: ScrapedPrometheus) -> Iterator[PrometheusClient]:
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        yield client


@pytest.fixture(scope="module")
def result(client: PrometheusClient) -> RefreshResult:
    return SampleRefresher(client, SchedulingSettings()).refresh(AT, None, None)


def window(grid: SampleGrid, node: str) -> Floats:
    found: Floats = grid.values[grid.nodes.index(node)][-60:]
    return found


def cpu(result: RefreshResult) -> SampleGrid:
    return result.samples.grids[LoadResource.CPU]


@pytest.mark.parametrize(
    ("node", "least", "most"),
    [
        ("plain", 0.37, 0.40),
        ("late", 0.37, 0.40),
        ("missed", 0.32, 0.40),
        ("pair", 0.32, 0.40),
        ("restarted", 0.32, 0.40),
        ("idle", 0.37, 0.40),
        ("thirty", 0.34, 0.40),
        ("sixty", 0.28, 0.40),
    ],
)
def test_a_switching_load_has_a_high_deviation(result: RefreshResult, node: str, least: float, most: float) -> None:
    found = window(cpu(result), node)
    assert np.count_nonzero(~np.isnan(found)) >= 55
    assert least <= np.nanstd(found) <= most
    assert np.nanmean(found) == pytest.approx(0.51, abs=0.05)
    assert np.nanmin(found) >= 0
    assert np.nanmax(found) <= 1


def fact(values: Floats, result: RefreshResult, node: str) -> float:
    return float(values[cpu(result).nodes.index(node)])


def test_a_pair_of_prometheus_servers_counts_once_for_a_node(result: RefreshResult) -> None:
    assert window(cpu(result), "pair") == pytest.approx(window(cpu(result), "plain"), abs=0.45)
    memory = result.samples.grids[LoadResource.MEMORY]
    assert window(memory, "pair") == pytest.approx(0.6)


def test_a_cpu_counts_once_whatever_the_number_of_its_series(client: PrometheusClient) -> None:
    """By the number of CPUs it is seen whether a partial answer has all of a node: a pair may lack one server."""
    query = resource_query(LoadResource.CPU, rate=rate_function(15), matchers=()).expression
    answer = client.instant(query, timeout_seconds=10, at=AT)
    samples = [one for batch in answer.batches(UNPACED) for one in batch]
    cpus = {one.labels["instance"]: one.value for one in samples if one.labels[PART_LABEL] == CPUS}
    assert {name: cpus.get(f"{name}:9100") for name in ("plain", "pair", "restarted", "idle", "memory")} == {
        **dict.fromkeys(("plain", "pair", "restarted", "idle"), 2.0),
        "memory": None,
    }


def test_a_counter_reset_is_detected_and_does_not_distort_the_load(result: RefreshResult) -> None:
    assert fact(cpu(result).reset_at, result, "reset") == pytest.approx(AT - 290, abs=20)
    assert math.isnan(fact(cpu(result).reset_at, result, "plain"))
    assert 0.09 <= np.nanmin(window(cpu(result), "reset")) <= np.nanmax(window(cpu(result), "reset")) <= 0.91


def test_stopped_counters_have_no_value_and_are_detected(result: RefreshResult) -> None:
    assert np.isnan(window(cpu(result), "stuck")).all()
    assert AT - fact(cpu(result).advancing, result, "stuck") >= 600
    assert fact(cpu(result).advancing, result, "plain") == AT


def test_whether_counters_advance_is_unknown_with_idle_modes_only(result: RefreshResult) -> None:
    assert math.isnan(fact(cpu(result).advancing, result, "idle"))


def test_failed_scrapes_leave_a_gap_and_do_not_repeat_the_last_value(result: RefreshResult) -> None:
    missing = np.isnan(window(cpu(result), "gap"))
    assert np.count_nonzero(missing) == pytest.approx(360 / 15, abs=2)
    memory = result.samples.grids[LoadResource.MEMORY]
    assert np.count_nonzero(np.isnan(window(memory, "gap"))) == pytest.approx(360 / 15, abs=2)


@pytest.mark.parametrize(("node", "seconds"), [("plain", 15), ("missed", 15), ("thirty", 30), ("sixty", 60)])
def test_the_scrape_interval_is_detected(result: RefreshResult, node: str, seconds: float) -> None:
    assert fact(cpu(result).scrape_seconds, result, node) == pytest.approx(seconds, rel=0.01)


def test_the_newest_sample_is_the_one_that_was_scraped(result: RefreshResult) -> None:
    assert fact(cpu(result).newest, result, "sixty") == pytest.approx(START + 4.2 + 1140, abs=0.01)


def test_a_node_without_a_metric_is_missing_only_in_that_resource(result: RefreshResult) -> None:
    assert "memory" not in cpu(result).nodes
    assert window(result.samples.grids[LoadResource.MEMORY], "memory") == pytest.approx(0.6)
    assert result.failures == {}


@pytest.mark.parametrize(
    ("resource", "ratio"), [(LoadResource.NETWORK, 0.5), (LoadResource.DISK, 0.4), (LoadResource.GPU, 0.5)]
)
def test_the_busiest_device_and_the_mean_gpu_are_the_load_of_a_node(
    result: RefreshResult, resource: LoadResource, ratio: float
) -> None:
    grid = result.samples.grids[resource]
    assert grid.nodes == ("copies", "devices")
    assert window(grid, "devices") == pytest.approx(ratio, abs=0.001)
    assert grid.newest[1] == pytest.approx(fact(cpu(result).newest, result, "devices"))


def test_a_resource_that_no_exporter_has_is_not_queried(client: PrometheusClient) -> None:
    result = SampleRefresher(client, SchedulingSettings(matchers={"cluster": "b"})).refresh(AT, None, None)
    assert set(result.samples.grids) == {LoadResource.CPU, LoadResource.MEMORY}
    assert result.queries == 3


def test_matchers_select_one_cluster_of_several(client: PrometheusClient) -> None:
    settings = SchedulingSettings(matchers={"cluster": "b"})
    assert cpu(SampleRefresher(client, settings).refresh(AT, None, None)).nodes == ("other",)


def test_recording_rules_are_used_if_they_cover_all_exporters(client: PrometheusClient, result: RefreshResult) -> None:
    settings = SchedulingSettings(matchers={"cluster": "recorded"})
    covered = SampleRefresher(client, settings).refresh(AT, None, None)
    assert window(cpu(covered), "ruled") == pytest.approx(0.77)
    assert fact(cpu(covered).advancing, covered, "ruled") == AT
    assert fact(cpu(covered).newest, covered, "ruled") == fact(cpu(result).newest, result, "plain")
    assert np.nanstd(window(cpu(result), "ruled")) > 0.3


def test_a_configured_query_replaces_the_built_in_one(client: PrometheusClient) -> None:
    own = "1 - avg by (instance) (rate(node_cpu_seconds_total{mode='idle'}[2m])) / 0.9 # ours"
    result = SampleRefresher(client, SchedulingSettings(queries={LoadResource.CPU: own})).refresh(AT, None, None)
    assert not result.failures
    assert 0.3 < np.nanmean(window(cpu(result), "plain")) < 0.7
    assert math.isnan(fact(cpu(result).advancing, result, "stuck"))


def test_a_failed_query_affects_only_its_own_resource(client: PrometheusClient) -> None:
    settings = SchedulingSettings(queries={LoadResource.CPU: "sum by (instance ("})
    result = SampleRefresher(client, settings).refresh(AT, None, None)
    assert list(result.failures) == [LoadResource.CPU]
    assert "parse error" in result.failures[LoadResource.CPU]
    assert set(result.samples.grids) == set(LoadResource) - {LoadResource.CPU}


def test_a_later_refresh_queries_only_missing_steps(prometheus: ScrapedPrometheus) -> None:
    with RecordingClient(PrometheusSettings(prometheus.url)) as client:
        refresher = SampleRefresher(client, SchedulingSettings())
        first = refresher.refresh(AT - 300, None, None)
        before = len(client.ranges)
        second = refresher.refresh(AT - 270, first.samples, None)
        whole = SampleRefresher(client, SchedulingSettings()).refresh(AT - 270, None, None)
    assert first.queries == 6
    assert second.queries == 5
    assert client.ranges[before : before + 5] == [(AT - 315, AT - 270)] * 5
    assert window(cpu(second), "plain") == pytest.approx(window(cpu(whole), "plain"), nan_ok=True)
    assert second.samples.grids[LoadResource.CPU].nodes == cpu(whole).nodes


def test_samples_of_a_state_file_are_completed_and_not_queried_again(prometheus: ScrapedPrometheus) -> None:
    with RecordingClient(PrometheusSettings(prometheus.url)) as client:
        saved = SampleRefresher(client, SchedulingSettings()).refresh(AT - 300, None, None).samples
        client.ranges.clear()
        result = SampleRefresher(client, SchedulingSettings()).refresh(AT, replace(saved, from_file=True), None)
    assert client.ranges == [(AT - 315, AT)] * 5
    assert not result.samples.from_file
    assert not np.isnan(window(cpu(result), "plain")).any()


def test_samples_that_the_caller_has_dropped_are_queried_again(client: PrometheusClient) -> None:
    refresher = SampleRefresher(client, SchedulingSettings())
    refresher.refresh(AT - 30, None, None)
    found = window(cpu(refresher.refresh(AT, None, None)), "plain")
    assert np.count_nonzero(~np.isnan(found)) == 60


def test_an_outage_keeps_the_samples_and_reports_the_failures(client: PrometheusClient) -> None:
    saved = SampleRefresher(client, SchedulingSettings()).refresh(AT, None, None).samples
    with PrometheusClient(PrometheusSettings("http://127.0.0.1:9")) as unreachable:
        result = SampleRefresher(unreachable, SchedulingSettings()).refresh(
            AT + 30, replace(saved, from_file=True), None
        )
    assert set(result.failures) == set(LoadResource)
    assert result.samples.from_file
    assert cpu(result) is saved.grids[LoadResource.CPU]


def test_an_address_is_mapped_to_its_node_and_the_rest_is_listed_with_the_repair(client: PrometheusClient) -> None:
    node = cluster_node("worker-7", NodeAddress("InternalIP", "10.0.0.7"))
    result = SampleRefresher(client, SchedulingSettings()).refresh(AT, None, (node,))
    assert cpu(result).nodes == ("worker-7",)
    assert not np.isnan(window(cpu(result), "worker-7")).any()
    unmapped = {one.instance: one for one in result.unmapped}
    assert unmapped["plain:9100"].resources == (LoadResource.CPU, LoadResource.MEMORY)
    assert "relabel" in unmapped["plain:9100"].fix
    assert "10.0.0.7:9100" not in unmapped


def test_samples_from_before_the_node_objects_are_queried_again_under_their_names(client: PrometheusClient) -> None:
    refresher = SampleRefresher(client, SchedulingSettings())
    before = refresher.refresh(AT - 30, None, None)
    assert "10.0.0.7" in cpu(before).nodes
    node = cluster_node("worker-7", NodeAddress("InternalIP", "10.0.0.7"))
    after = refresher.refresh(AT, before.samples, (node,))
    assert cpu(after).nodes == ("worker-7",)
    assert not np.isnan(window(cpu(after), "worker-7")).any()


def test_node_objects_without_samples_are_in_the_grid(client: PrometheusClient) -> None:
    nodes = (cluster_node("plain"), cluster_node("absent"))
    grid = cpu(SampleRefresher(client, SchedulingSettings()).refresh(AT, None, nodes))
    assert grid.nodes == ("absent", "plain")
    assert np.isnan(grid.newest).tolist() == [True, False]


def test_a_query_that_was_too_large_is_sent_in_smaller_pieces(prometheus: ScrapedPrometheus) -> None:
    with RecordingClient(PrometheusSettings(prometheus.url), most_steps=40) as client:
        refresher = SampleRefresher(client, SchedulingSettings(matchers={"cluster": "b"}), refresh_seconds=60)
        first = refresher.refresh(AT, None, None)
        second = refresher.refresh(AT, first.samples, None)
    assert set(first.failures) == {LoadResource.CPU, LoadResource.MEMORY}
    assert "too many samples" in first.failures[LoadResource.CPU]
    assert not second.failures
    assert not np.isnan(window(cpu(second), "other")).any()


class RecordingClient(PrometheusClient):
    """A client that records the ranges of its queries, and refuses longer ones as a small Prometheus does."""

    def __init__(self, settings: PrometheusSettings, most_steps: int = 11_000) -> None:
        super().__init__(settings)
        self.ranges: list[tuple[float, float]] = []
        self._most_seconds = most_steps * 15

    def read_range(self, reader: RangeReader, query: str, *, start: float, end: float, **options: Any) -> None:  # noqa: ANN401
        self.ranges.append((start, end))
        if end - start > self._most_seconds:
            raise QueryRefusedError(query, "execution", "query processing would load too many samples into memory")
        super().read_range(reader, query, start=start, end=end, **options)
