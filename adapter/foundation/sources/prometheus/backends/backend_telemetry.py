"""Counts the queries of each backend and of all together. Without named backends, only the total is counted."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from adapter.foundation.sources.prometheus.prometheus_telemetry import SECONDS_BUCKETS, PrometheusTelemetry

if TYPE_CHECKING:
    from collections.abc import Collection

    from adapter.foundation.sources.prometheus.prometheus_telemetry import QueryTelemetry

_UNANSWERED: Final = frozenset({"unreachable", "timeout", "unauthenticated", "unexpected"})
"""Results which show that the Prometheus gave no usable answer; all other failures concern the query."""
_NOT_SENT: Final = "unreadable"
FLAGS_BACKEND: Final = "--prometheus-url"
"""The name of the Prometheus of the flags beside named backends, none of which can be called so."""


class _Families:
    """The metrics that carry the name of a backend."""

    def __init__(self, queries: Counter, duration: Histogram, up: Gauge) -> None:
        self._queries = queries
        self._duration = duration
        self._up = up
        self._known: set[str] = set()
        """Backends in use; others are ignored, since a query to a former backend may still end."""
        self._lock = threading.Lock()

    def use(self, backend: str) -> None:
        """Count the queries of a backend from now on."""
        with self._lock:
            self._known.add(backend)

    def record_query(self, backend: str, kind: str, result: str, seconds: float) -> None:
        """Record one query."""
        with self._lock:
            if backend not in self._known:
                return
            self._queries.labels(backend, kind, result).inc()
            self._duration.labels(backend).observe(seconds)
            if result != _NOT_SENT:
                self._up.labels(backend).set(0.0 if result in _UNANSWERED else 1.0)

    def keep(self, backends: Collection[str]) -> None:
        """Forget the metrics of all backends that are not listed."""
        with self._lock:
            for gone in self._known.difference(backends):
                for family in (self._queries, self._duration, self._up):
                    family.remove_by_labels({"backend": gone})
            self._known = set(backends)


class BackendTelemetry:
    """The metrics of all clients of a process. For any number of threads."""

    def __init__(self, registry: CollectorRegistry, prefix: str, every: PrometheusTelemetry | None = None) -> None:
        """Register the metrics of all queries, unless `every` has them already; those by backend follow later."""
        self._all = every or PrometheusTelemetry(registry, prefix)
        self._registry = registry
        self._prefix = prefix
        self._families: _Families | None = None

    def of(self, backend: str) -> QueryTelemetry:
        """Return the counter of a backend's queries; an empty name means the only backend."""
        if not backend:
            return self._all
        if self._families is None:
            self._families = self._register_families()
        for each in (backend, FLAGS_BACKEND):
            self._families.use(each)
        return _OneBackend(backend, self)

    def of_flags(self) -> QueryTelemetry:
        """Return the counter of the queries to the Prometheus of the flags, which has a name while others have one."""
        return _OneBackend(FLAGS_BACKEND, self)

    def record_query(self, backend: str, *, kind: str, path: str, server: str, result: str, seconds: float) -> None:
        """Record one query to a backend."""
        self._all.record_query(kind=kind, path=path, server=server, result=result, seconds=seconds)
        if self._families is not None:
            self._families.record_query(backend, kind, result, seconds)

    def keep(self, backends: Collection[str]) -> None:
        """Forget the metrics of all backends that are not listed; without any, also those of the flags' Prometheus."""
        if self._families is not None:
            self._families.keep({*backends, FLAGS_BACKEND} if backends else ())

    def _register_families(self) -> _Families:
        registry, prefix = self._registry, self._prefix
        return _Families(
            Counter(
                f"{prefix}_prometheus_backend_queries",
                "Queries sent to each backend, where a list in `prometheus` names some, by kind and result.",
                ("backend", "kind", "result"),
                registry=registry,
            ),
            Histogram(
                f"{prefix}_prometheus_backend_query_duration_seconds",
                "Time from the request to a backend to the whole answer, or to the failure.",
                ("backend",),
                buckets=SECONDS_BUCKETS,
                registry=registry,
            ),
            Gauge(
                f"{prefix}_prometheus_backend_up",
                "1 if the backend answered its last query, 0 if it gave none that can be used.",
                ("backend",),
                registry=registry,
            ),
        )


@dataclass(frozen=True, slots=True)
class _OneBackend:
    name: str
    telemetry: BackendTelemetry

    def record_query(self, *, kind: str, path: str, server: str, result: str, seconds: float) -> None:
        """Record one query."""
        self.telemetry.record_query(self.name, kind=kind, path=path, server=server, result=result, seconds=seconds)
