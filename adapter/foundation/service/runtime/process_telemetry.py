"""Metrics that every process has: the registry, build information, tasks, connections, and the exposition."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from adapter.foundation.service.runtime.credential_telemetry import CredentialCollector


def new_registry(version: str) -> CollectorRegistry:
    """Return a new registry with the process's CPU, memory and file descriptors, and `tidewatch_build_info`."""
    # A `_created` series for each counter would double the number of series without being of use.
    disable_created_metrics()  # type: ignore[no-untyped-call] # the library leaves this one untyped
    registry = CollectorRegistry(auto_describe=True)
    ProcessCollector(registry=registry)
    registry.register(CredentialCollector())
    labels = ("version", "python_version")
    build = Gauge(
        "tidewatch_build_info",
        "Always 1; the labels are the versions of the program and of Python.",
        labels,
        registry=registry,
    )
    build.labels(version, platform.python_version()).set(1)
    return registry


def exposition(registry: CollectorRegistry) -> bytes:
    """Return the metrics in the text format of Prometheus, of the type `METRICS_TYPE`."""
    return generate_latest(registry)


class TaskMetrics:
    """Exposes `PREFIX_task_runs_total`, `PREFIX_task_last_success_timestamp_seconds`, and which tasks are overdue."""

    def __init__(self, registry: CollectorRegistry, prefix: str) -> None:
        self._runs = Counter(
            f"{prefix}_task_runs_total",
            "Runs of background tasks, by result: ok, late, error.",
            ("task", "result"),
            registry=registry,
        )
        self._success = Gauge(
            f"{prefix}_task_last_success_timestamp_seconds",
            "When a background task last succeeded.",
            ("task",),
            registry=registry,
        )
        self._overdue = Gauge(
            f"{prefix}_task_overdue", "1 while a background task runs past its deadline.", ("task",), registry=registry
        )

    def add_task(self, task: str, overdue: Callable[[], bool]) -> None:
        """Expose a task before its first run."""
        for result in ("ok", "late", "error"):
            self._runs.labels(task, result)
        self._overdue.labels(task).set_function(lambda: float(overdue()))

    def record_run(self, task: str, result: str) -> None:
        """Record a run: `ok`, `late` (past its deadline) or `error`."""
        self._runs.labels(task, result).inc()
        if result != "error":
            self._success.labels(task).set_to_current_time()


class ConnectionCounts(Protocol):
    """The worker's counts of connections."""

    @property
    def dropped(self) -> Mapping[str, int]:
        """Return the number of dropped connections by reason."""

    def open_connections(self) -> Mapping[str, int]:
        """Return the number of open connections by stage."""


class ConnectionCollector(Collector):
    """Exposes `PREFIX_connections{stage}` and `PREFIX_connections_dropped_total{reason}`, read at each scrape."""

    def __init__(self, counts: ConnectionCounts, prefix: str) -> None:
        self._counts = counts
        self._prefix = prefix

    def collect(self) -> Iterator[Metric]:
        """Yield both metric families."""
        open_now = GaugeMetricFamily(f"{self._prefix}_connections", "Open connections, by stage.", labels=("stage",))
        for stage, count in self._counts.open_connections().items():
            open_now.add_metric((stage,), count)
        yield open_now
        dropped = CounterMetricFamily(
            f"{self._prefix}_connections_dropped", "Connections that were dropped, by reason.", labels=("reason",)
        )
        for reason, count in sorted(self._counts.dropped.items()):
            dropped.add_metric((reason,), count)
        yield dropped
