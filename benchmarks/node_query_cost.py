"""The cost of one refresh of the nodes' load in a real Prometheus with node_exporter's series of some nodes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec

from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.queries.refresher import SampleRefresher
from benchmarks.node_loads import SCRAPE_SECONDS, class_of, mean_ratio
from benchmarks.scripted_cluster import node_address
from benchmarks.usage import usage
from demo.machine.ports import fetched
from demo.machine.prometheus import running_prometheus
from tests.support.backfill import backfill

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.sources.prometheus.answers.ranges import RangeReader
    from benchmarks.report import Row

CPUS = 4
MODES = ("idle", "iowait", "irq", "nice", "softirq", "steal", "system", "user")
PAST_SECONDS = 1800
REFRESH_SECONDS = 30.0
_REFRESHES_TO_FILL = 6


@dataclass(frozen=True, slots=True)
class _Asked:
    query: str
    start: float
    end: float
    step: float


class _RecordingClient(PrometheusClient):
    """Records range queries."""

    def __init__(self, settings: PrometheusSettings) -> None:
        super().__init__(settings)
        self.asked: list[_Asked] = []

    def read_range(
        self,
        reader: RangeReader,
        query: str,
        *,
        start: float,
        end: float,
        step_seconds: float,
        **limits: Any,  # noqa: ANN401 - handed on as they are
    ) -> None:
        """Record the query, and read its answer."""
        self.asked.append(_Asked(query, start, end, step_seconds))
        super().read_range(reader, query, start=start, end=end, step_seconds=step_seconds, **limits)


def query_cost_row(folder: Path, nodes: int) -> Row:
    """Return the row of one refresh that lacks only the newest step. Raises ProcessFailedError."""
    now = time.time() // SCRAPE_SECONDS * SCRAPE_SECONDS
    backfill(folder, _exposition(nodes, now - PAST_SECONDS, now))
    with (
        running_prometheus(folder, scrape_configs=[]) as prometheus,
        _RecordingClient(PrometheusSettings(prometheus.url)) as client,
    ):
        refresher = SampleRefresher(client, SchedulingSettings(), refresh_seconds=REFRESH_SECONDS)
        samples, at = None, now - _REFRESHES_TO_FILL * REFRESH_SECONDS
        for _ in range(_REFRESHES_TO_FILL):
            samples = refresher.refresh(at, samples, None).samples
            at += REFRESH_SECONDS
        client.asked.clear()
        used = usage(prometheus.pid).cpu_seconds
        result = refresher.refresh(at, samples, None)
        cpu = usage(prometheus.pid).cpu_seconds - used
        read = sum(_samples_read(prometheus.url, asked) for asked in client.asked)
    return {
        "load": f"one refresh of {nodes:,} nodes with {CPUS} CPUs, real Prometheus",
        "errors": len(result.failures) + int(not result.samples.grids),
        "prometheus_queries": result.queries,
        "samples_read": read,
        "samples_read_per_node_and_cpu": round(read / nodes / CPUS, 1),
        "prometheus_cpu_seconds": round(cpu, 2),
    }


def _samples_read(url: str, asked: _Asked) -> int:
    """Repeat a query, and return how many samples the engine reads for it (the metric's `query_samples_total`)."""
    parameters = {"query": asked.query, "start": asked.start, "end": asked.end, "step": asked.step, "stats": "all"}
    document = msgspec.json.decode(fetched(f"{url}/api/v1/query_range?{urlencode(parameters)}"))
    return int(document["data"]["stats"]["samples"]["totalQueryableSamples"])


def _exposition(nodes: int, first: float, last: float) -> str:
    """Return the samples of CPU and memory of all nodes, each with the mean load of its class."""
    times = [first + SCRAPE_SECONDS * place for place in range(int((last - first) / SCRAPE_SECONDS) + 1)]
    lines = ["# TYPE node_cpu_seconds counter"]
    for number in range(nodes):
        mean = mean_ratio(class_of(number))
        for cpu in range(CPUS):
            for mode in MODES:
                share = 1 - mean if mode == "idle" else mean if mode == "user" else 0.0
                labels = f'instance="{node_address(number)}:9100",cpu="{cpu}",mode="{mode}"'
                lines += [f"node_cpu_seconds_total{{{labels}}} {(at - first) * share:.3f} {at:.3f}" for at in times]
    for name in ("MemTotal", "MemAvailable"):
        lines.append(f"# TYPE node_memory_{name}_bytes gauge")
        for number in range(nodes):
            value = 1.0 if name == "MemTotal" else 1 - mean_ratio(class_of(number))
            labels = f'instance="{node_address(number)}:9100"'
            lines += [f"node_memory_{name}_bytes{{{labels}}} {value:.4f} {at:.3f}" for at in times]
    return "\n".join([*lines, "# EOF", ""])
