"""Nodes of two clusters with the same addresses, in one real Prometheus."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.queries.refresher import SampleRefresher
from tests.adapter.nodes.names.cluster_nodes import cluster_node, internal
from tests.adapter.nodes.queries.exporters import NodeExporter, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.nodes.queries.refresh_results import RefreshResult
    from tests.support.prometheus import ScrapedPrometheus

AT = int(time.time() // 240) * 240 - 7200
JOB = {"job": "node-exporter", "namespace": "monitoring"}
SHARED, ALONE, PAIR = "10.0.0.1:9100", "10.0.0.2:9100", "10.0.0.3:9100"
NODES = tuple(cluster_node(f"node-{number}", internal(f"10.0.0.{number}")) for number in (1, 2, 3))
EXPORTERS = (
    NodeExporter(SHARED, labels={**JOB, "cluster": "ours"}, devices=True),
    NodeExporter(SHARED, labels={**JOB, "cluster": "theirs"}, modes=("idle",), devices=True),
    NodeExporter(ALONE, labels={**JOB, "cluster": "ours"}, devices=True),
    NodeExporter(PAIR, labels={**JOB, "cluster": "ours", "replica": "a"}, devices=True),
    NodeExporter(PAIR, labels={**JOB, "cluster": "ours", "replica": "b"}, devices=True),
)


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    return start_prometheus(history=text_of(EXPORTERS, AT - 1200.0, AT))


def refreshed(
    prometheus: ScrapedPrometheus, matchers: Mapping[str, str], nodes: tuple[ClusterNode, ...] | None = NODES
) -> RefreshResult:
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        return SampleRefresher(client, SchedulingSettings(matchers=matchers)).refresh(AT, None, nodes)


def measured(result: RefreshResult, resource: LoadResource) -> set[str]:
    """Return the nodes that have a value of a resource."""
    grid = result.samples.grids[resource]
    return {node for node, values in zip(grid.nodes, grid.values, strict=True) if not np.isnan(values).all()}


@pytest.mark.parametrize("resource", LoadResource)
def test_a_node_does_not_get_the_mean_of_two_clusters(prometheus: ScrapedPrometheus, resource: LoadResource) -> None:
    result = refreshed(prometheus, {})
    assert not result.failures
    assert measured(result, resource) == {"node-2", "node-3"}


def test_the_series_of_several_clusters_are_listed_with_a_repair(prometheus: ScrapedPrometheus) -> None:
    found = refreshed(prometheus, {}).unmapped
    assert {one.instance for one in found} == {SHARED}
    assert all("several clusters" in one.fix and "--prometheus-matchers" in one.fix for one in found)


def test_the_series_of_several_clusters_do_not_count_without_node_objects_either(prometheus: ScrapedPrometheus) -> None:
    result = refreshed(prometheus, {}, None)
    assert measured(result, LoadResource.MEMORY) == {"10.0.0.2", "10.0.0.3"}


def test_matchers_select_one_cluster(prometheus: ScrapedPrometheus) -> None:
    result = refreshed(prometheus, {"cluster": "ours"})
    assert not result.unmapped
    for resource in LoadResource:
        assert measured(result, resource) == {"node-1", "node-2", "node-3"}
