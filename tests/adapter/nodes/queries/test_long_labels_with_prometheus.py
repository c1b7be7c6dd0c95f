"""A tenant's pod that exports labels of 300 kB, in a real Prometheus."""

from __future__ import annotations

import re
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from adapter.foundation.cluster.values.state import NodeAddress
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.nodes.model.day import LoadDay
from adapter.nodes.model.loads import LoadResource, UnmappedSeries
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.queries.refresher import SampleRefresher
from tests.adapter.nodes.names.cluster_nodes import cluster_node
from tests.adapter.nodes.queries.exporters import NodeExporter, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.nodes.model.arrays import Floats
    from tests.support.prometheus import ScrapedPrometheus

AT = int(time.time() // 240) * 240 - 7200
NAMESPACE, NAME = "s" * 63, "n" * 253
"""The longest names that Kubernetes allows."""
NODES = (cluster_node(NAME, NodeAddress("InternalIP", "10.0.0.1")),)
OURS = NodeExporter(f"{NAME}:65535", labels={"job": f"{NAMESPACE}/{NAME}", "namespace": NAMESPACE, "node": NAME})
EVIL = {"job": "pods", "namespace": "evil"}
IDENTITY = ("Hostname", "instance", "kubernetes_node", "node", "nodename")
SOURCE = ("job", "kubernetes_namespace", "namespace")
LONG_BYTES = 300_000
SERIES_OF_A_LABEL = 4
MOST_MIB = 40


@dataclass(frozen=True)
class Refreshed:
    """What a refresh in a process of its own found, and what it cost."""

    grew_mib: float
    """By how much the most memory that the process ever had grew."""
    failures: Mapping[LoadResource, str]
    unmapped: tuple[UnmappedSeries, ...]
    cpu: Floats
    """The newest CPU of each node."""


def peak_kib() -> int:
    """Return the most memory that this process ever had; unlike `getrusage`, without that of the process it is from."""
    (found,) = re.findall(r"VmHWM:\s+([0-9]+) kB", Path("/proc/self/status").read_text())
    return int(found)


def refreshed(url: str, queries: Mapping[LoadResource, str], now: float) -> Refreshed:
    """Refresh at `now`, and ask for the day; to be called in a process of its own, whose `AT` may be a later one."""
    settings = SchedulingSettings(queries=queries)
    with PrometheusClient(PrometheusSettings(url)) as client:
        refresher = SampleRefresher(client, settings)
        before = peak_kib()
        result = refresher.refresh(now, None, NODES)
        past = refresher.fill_day(now + 3600, LoadDay(), NODES, 30.0)
        grew = peak_kib() - before
    assert not past.failure
    return Refreshed(
        grew / 1024, result.failures, result.unmapped, result.samples.grids[LoadResource.CPU].values[:, -1]
    )


def long_labels() -> list[NodeExporter]:
    """Return exporters of one pod; for each label that queries return, some have a very long one of two lines."""
    return [
        NodeExporter(
            "10.9.9.9:8080",
            scrape_seconds=30,
            labels={**EVIL, label: f"{number}\\n{'x' * LONG_BYTES}"},
            cpus=1,
            modes=("idle", "user"),
            memory=False,
        )
        for label in (*IDENTITY, *SOURCE)
        for number in range(SERIES_OF_A_LABEL)
    ]


def unames() -> str:
    """Return the exporters' reports of their host names, one of them very long."""
    hosts = {"10.0.0.1:9100": "x", "10.9.9.9:8080": "x" * LONG_BYTES}
    return "".join(
        f'node_uname_info{{instance="{instance}",nodename="{host}"}} 1 {AT - 30}\n' for instance, host in hosts.items()
    )


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    return start_prometheus(history=text_of([OURS, *long_labels()], AT - 60.0, AT).replace("# EOF", unames() + "# EOF"))


@pytest.mark.parametrize(
    "queries",
    [{}, {LoadResource.CPU: "1 - avg without (cpu, mode) (rate(node_cpu_seconds_total{mode='idle'}[2m])) / 0.9"}],
    ids=["built in", "configured"],
)
def test_long_labels_cost_no_memory_and_do_not_affect_other_nodes(
    prometheus: ScrapedPrometheus, queries: dict[LoadResource, str]
) -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        found = process.submit(refreshed, prometheus.url, queries, AT).result()
    assert not found.failures
    assert not np.isnan(found.cpu).any()
    assert found.grew_mib < MOST_MIB


def test_ignored_series_of_a_configured_query_are_reported(prometheus: ScrapedPrometheus) -> None:
    settings = SchedulingSettings(queries={LoadResource.CPU: "node_cpu_seconds_total{cpu='0', mode='idle'} % 1"})
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        result = SampleRefresher(client, settings).refresh(AT, None, NODES)
    named = result.unmapped[-1]
    assert named.resources == (LoadResource.CPU,)
    assert "64 series in the answer for cpu have more than 65,536 bytes of labels" in named.refused_for
    assert "queries" in named.fix


def test_exporters_of_long_labels_are_reported(prometheus: ScrapedPrometheus) -> None:
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        result = SampleRefresher(client, SchedulingSettings()).refresh(AT, None, NODES)
    source, evil = sorted(result.unmapped, key=lambda one: len(one.labels))
    assert (evil.labels, evil.resources) == (EVIL, (LoadResource.CPU,))
    assert all(label in evil.refused_for for label in IDENTITY)
    assert (source.labels, source.resources) == ({}, (LoadResource.CPU,))
    assert all(label in source.refused_for for label in SOURCE)
