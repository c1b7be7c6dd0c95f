"""Counters and durations of the queries to Prometheus, in the caller's registry."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from prometheus_client import CollectorRegistry, Histogram

SECONDS_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class QueryTelemetry(Protocol):
    """Counts the queries of a client."""

    def record_query(self, *, kind: str, path: str, server: str, result: str, seconds: float) -> None:
        """Record one query: `result` is `ok` or a PrometheusError's `result`."""


class PrometheusTelemetry:
    """The metrics of a `PrometheusClient`; one for each registry."""

    def __init__(self, registry: CollectorRegistry, prefix: str, *, request_duration_name: str | None = None) -> None:
        """Register the metrics, whose names begin with the prefix.

        `request_duration_name` also exposes durations by API path and server, under another program's metric name on
        which dashboards rely; None exposes no such metric.
        """
        from prometheus_client import Counter, Histogram  # noqa: PLC0415 - commands that run once expose nothing

        self._queries = Counter(
            f"{prefix}_prometheus_queries",
            "Queries sent to Prometheus, by kind (instant, range, series, clock) and result (ok, timeout, …).",
            ("kind", "result"),
            registry=registry,
        )
        self._duration = Histogram(
            f"{prefix}_prometheus_query_duration_seconds",
            "Time from the request to the whole answer, or to the failure.",
            buckets=SECONDS_BUCKETS,
            registry=registry,
        )
        self._request_duration: Histogram | None = None
        self._lock = threading.Lock()
        self._servers: set[str] = set()
        """Servers that have durations."""
        self._gone: set[str] = set()
        """Former servers, which are ignored, since a query to one may still end."""
        if request_duration_name is not None:
            self._request_duration = Histogram(
                request_duration_name,
                "Time of requests to Prometheus, by API path and server.",
                ("path", "server"),
                buckets=SECONDS_BUCKETS,
                registry=registry,
            )

    def record_query(self, *, kind: str, path: str, server: str, result: str, seconds: float) -> None:
        """Record one query: `result` is `ok` or a PrometheusError's `result`."""
        self._queries.labels(kind, result).inc()
        self._duration.observe(seconds)
        if self._request_duration is None:
            return
        with self._lock:
            if server not in self._gone:
                self._servers.add(server)
                self._request_duration.labels(path, server).observe(seconds)

    def keep_servers(self, servers: Collection[str]) -> None:
        """Forget the durations of all servers that are not listed."""
        if self._request_duration is None:
            return
        with self._lock:
            for gone in self._servers.difference(servers):
                self._request_duration.remove_by_labels({"server": gone})
            self._gone = (self._gone | self._servers).difference(servers)
            self._servers.intersection_update(servers)
