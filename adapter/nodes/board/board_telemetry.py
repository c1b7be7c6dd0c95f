"""Own metrics of the board."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

from adapter.foundation.web.metric_text import family, label, sample

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import CollectorRegistry

    from adapter.nodes.hotspots.crowded import CrowdedReplicas
    from adapter.nodes.model.board import ScoreBasis
    from adapter.nodes.queries.results import RefreshResult

BASES: tuple[ScoreBasis, ...] = ("metrics", "none", "requests")


class BoardMetrics:
    """Metrics of the basis of scores and the cost of the last refresh."""

    def __init__(self, registry: CollectorRegistry, prefix: str) -> None:
        self._basis = Gauge(
            f"{prefix}_extender_basis",
            "1 for the present basis of the scores: metrics, none (all nodes get the middle score), requests.",
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
        self.basis("none")

    def basis(self, basis: ScoreBasis) -> None:
        """Show the basis of scores."""
        for one in BASES:
            self._basis.labels(one).set(one == basis)

    def refreshed(self, result: RefreshResult) -> None:
        """Show the cost of a refresh."""
        self._seconds.set(result.seconds)
        self._queries.set(result.queries)

    def file_failed(self) -> None:
        """Count a write of the state file that failed."""
        self._file_failures.inc()


def hot_text(nodes: Iterable[str], crowded: Iterable[CrowdedReplicas] = ()) -> bytes:
    """Return the nodes and controllers of `/hotspots` in Prometheus's text format."""
    samples = (sample("tidewatch_node_hot", label("node", name), 1) for name in nodes)
    shares = (
        sample(
            "tidewatch_replicas_on_hot_nodes_ratio",
            f"{label('controller', each.controller)},{label('controller_namespace', each.namespace)}",
            round(each.ratio, 4),
        )
        for each in crowded
    )
    about = "Share of a controller's replicas that are on hot nodes, where it is at least half of them and two."
    return (
        family("tidewatch_node_hot", "1 for each node that /hotspots lists.", samples)
        + family("tidewatch_replicas_on_hot_nodes_ratio", about, shares)
    ).encode()
