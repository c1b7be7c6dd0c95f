"""What the process tells about itself: its registry, the metrics that every process has, and their text."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prometheus_client.metrics_core import Metric


def new_registry(version: str) -> CollectorRegistry:
    """Return a registry of its own, with the process's CPU, memory and descriptors and `tidewatch_build_info`."""
    # A `_created` series beside each counter would double their number, for a question that nobody asks.
    disable_created_metrics()  # type: ignore[no-untyped-call] # the library leaves this one untyped
    registry = CollectorRegistry(auto_describe=True)
    ProcessCollector(registry=registry)
    labels = ("version", "python_version")
    build = Gauge("tidewatch_build_info", "Always 1; the labels tell what runs.", labels, registry=registry)
    build.labels(version, platform.python_version()).set(1)
    return registry


def exposition(registry: CollectorRegistry, accept: str = "") -> tuple[bytes, str]:
    """Return the metrics as text and its content type, for a request's Accept header."""
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class TaskMetrics:
    """`PREFIX_task_runs_total{task,result}`, `PREFIX_task_last_success_timestamp_seconds{task}`, and who is overdue."""

    def __init__(self, registry: CollectorRegistry, prefix: str) -> None:
        self._runs = Counter(
            f"{prefix}_task_runs_total",
            "Runs of background tasks: ok, late, error.",
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

    def added(self, task: str, overdue: Callable[[], bool]) -> None:
        """Let a task be seen before its first run."""
        for result in ("ok", "late", "error"):
            self._runs.labels(task, result)
        self._overdue.labels(task).set_function(lambda: float(overdue()))

    def ended(self, task: str, result: str) -> None:
        """Count a run: `ok`, `late` (past its deadline) or `error`."""
        self._runs.labels(task, result).inc()
        if result != "error":
            self._success.labels(task).set_to_current_time()


class ConnectionCounts(Protocol):
    """What the worker knows about its connections."""

    @property
    def dropped(self) -> Mapping[str, int]:
        """Connections that were cut off, by reason."""
        ...

    def open_connections(self) -> Mapping[str, int]:
        """Open connections by stage."""
        ...


class ConnectionCollector(Collector):
    """`PREFIX_connections{stage}` and `PREFIX_connections_dropped_total{reason}`, read when scraped."""

    def __init__(self, counts: ConnectionCounts, prefix: str) -> None:
        self._counts = counts
        self._prefix = prefix

    def collect(self) -> Iterator[Metric]:
        """Yield both families."""
        open_now = GaugeMetricFamily(f"{self._prefix}_connections", "Open connections.", labels=("stage",))
        for stage, count in self._counts.open_connections().items():
            open_now.add_metric((stage,), count)
        yield open_now
        dropped = CounterMetricFamily(
            f"{self._prefix}_connections_dropped", "Connections that were cut off.", labels=("reason",)
        )
        for reason, count in sorted(self._counts.dropped.items()):
            dropped.add_metric((reason,), count)
        yield dropped
