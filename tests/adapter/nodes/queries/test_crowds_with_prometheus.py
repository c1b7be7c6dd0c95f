"""A tenant's pod that exports the load of far more nodes than there are, in a real Prometheus."""

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
from adapter.nodes.queries.refresher import SampleRefresher
from tests.adapter.nodes.names.cluster_nodes import cluster_node
from tests.adapter.nodes.queries.exporters import NodeExporter, text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.prometheus import ScrapedPrometheus

AT = int(time.time() // 240) * 240 - 7200
MADE_UP = 1100
NODES = (
    cluster_node("x", NodeAddress("InternalIP", "10.0.0.1")),
    cluster_node("y", NodeAddress("InternalIP", "10.0.0.2")),
)


@pytest.mark.parametrize("modes", [("idle", "user"), ("user",)], ids=["all modes", "only a busy one"])
def test_made_up_nodes_are_not_asked_for(
    start_prometheus: Callable[..., ScrapedPrometheus], modes: tuple[str, ...]
) -> None:
    source = {"job": "pods", "namespace": "evil"}
    exporters = [NodeExporter(f"10.0.0.{last}:9100", labels={"job": "pods", "namespace": "ours"}) for last in (1, 2)]
    exporters += [
        NodeExporter("10.9.9.9:8080", labels={**source, "node": f"made-up-{number}"}, cpus=1, modes=modes, memory=False)
        for number in range(MADE_UP)
    ]
    prometheus = start_prometheus(history=text_of(exporters, AT - 60.0, AT))
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        result = SampleRefresher(client, SchedulingSettings()).refresh(AT, None, NODES)
    assert not result.failures
    assert not np.isnan(result.samples.grids[LoadResource.CPU].values[:, -1]).any()
    (named,) = result.unmapped
    assert named.labels == source
    assert f"exports the load of {MADE_UP} nodes" in named.refused_for
