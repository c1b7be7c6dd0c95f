"""Metrics about the basis of scores and the cost of refreshes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge

if TYPE_CHECKING:
    from adapter.nodes.model.nodes_snapshot import ScoreBasis
    from adapter.nodes.queries.refresh_results import RefreshResult

BASES: tuple[ScoreBasis, ...] = ("metrics", "none", "requests")


class SnapshotMetrics:
    """Metrics about the basis of scores and the cost of the last refresh."""

    def __init__(self, registry: CollectorRegistry, prefix: str) -> None:
        self._basis = Gauge(
            f"{prefix}_extender_basis",
            "1 for the current basis of the scores: metrics, none (all nodes get the middle score), requests.",
            ["basis"],
            registry=registry,
        )
        self._seconds = Gauge(
            f"{prefix}_refresh_duration_seconds", "How long the last refresh of samples took.", registry=registry
        )
        self._queries = Gauge(
            f"{prefix}_refresh_queries", "Queries that the last refresh sent to Prometheus.", registry=registry
        )
        self._file_failures = Counter(
            f"{prefix}_state_file_failures", "Writes of the state file that failed.", registry=registry
        )
        self.set_basis("none")

    def set_basis(self, basis: ScoreBasis) -> None:
        """Set the basis of scores."""
        for one in BASES:
            self._basis.labels(one).set(one == basis)

    def set_refresh(self, result: RefreshResult) -> None:
        """Set the duration and the number of queries of a refresh."""
        self._seconds.set(result.seconds)
        self._queries.set(result.queries)

    def count_file_failure(self) -> None:
        """Count a write of the state file that failed."""
        self._file_failures.inc()
