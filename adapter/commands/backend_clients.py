"""Clients of the backends that rule files declare; each has its own connections and threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.threads import DaemonThreads
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED, Pace

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from adapter.foundation.sources.prometheus.prometheus_telemetry import QueryTelemetry

QUERY_THREADS: Final = 32
"""Threads for queries to one Prometheus: more than the lanes of `readings/asking` can use at once."""


class BackendClient(PrometheusClient):
    """Queries one backend. Thread-safe.

    While its credential files cannot be read, all queries to this backend fail.
    """

    def __init__(
        self, name: str, settings: PrometheusSettings, telemetry: QueryTelemetry | None = None, pace: Pace = UNPACED
    ) -> None:
        """Read the credentials, without connecting yet."""
        super().__init__(settings, telemetry=telemetry, pace=pace, awaits_credentials=True)
        self._threads = DaemonThreads(f"query {name}", QUERY_THREADS)

    def submit(self, work: Callable[[], None]) -> None:
        """Run the work on a thread that is reserved for this backend."""
        self._threads.submit(work)

    def close(self) -> None:
        """Close the idle connections, and end the threads once their running queries are done."""
        self._threads.close()
        super().close()
