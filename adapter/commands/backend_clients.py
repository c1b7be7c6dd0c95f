"""Clients of the backends that rule files declare; each has its own connections and threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.threads import DaemonThreads
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED, Pace

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer, SeriesAnswer
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from adapter.foundation.sources.prometheus.prometheus_telemetry import QueryTelemetry
    from adapter.foundation.sources.prometheus.queries.runtime import Started

QUERY_THREADS: Final = 32
"""Threads for queries to one Prometheus: more than the lanes of `readings/asking` can use at once."""


class BackendClient:
    """Queries one backend. Thread-safe.

    While its credential files cannot be read, all queries to this backend fail.
    """

    def __init__(
        self, name: str, settings: PrometheusSettings, telemetry: QueryTelemetry | None = None, pace: Pace = UNPACED
    ) -> None:
        """Read the credentials, without connecting yet."""
        self._client = PrometheusClient(settings, telemetry=telemetry, pace=pace, awaits_credentials=True)
        self._threads = DaemonThreads(f"query {name}", QUERY_THREADS)

    def instant(self, query: str, *, timeout_seconds: float, at: float | None = None) -> InstantAnswer:
        """Evaluate an expression at one moment (Unix seconds). Raises PrometheusError."""
        return self._client.instant(query, timeout_seconds=timeout_seconds, at=at)

    def series(self, selector: str, *, start: float, timeout_seconds: float) -> SeriesAnswer:
        """Look up the label sets of series that had samples since `start` (Unix seconds). Raises PrometheusError."""
        return self._client.series(selector, start=start, timeout_seconds=timeout_seconds)

    def started(self, seconds: float) -> Started:
        """Ask the server when it started, and wait up to `seconds`. Raises PrometheusError."""
        return self._client.started(seconds)

    def submit(self, work: Callable[[], None]) -> None:
        """Run the work on a thread that is reserved for this backend."""
        self._threads.submit(work)

    def close(self) -> None:
        """Close the idle connections, and end the threads once their running queries are done."""
        self._threads.close()
        self._client.close()
