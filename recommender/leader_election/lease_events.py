"""The events of an election, and their metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class LeaseEvents:
    """Receives the events of an election, in the thread of the elector. This class ignores all of them."""

    def acquired(self) -> None:
        """Handle that this process has begun to lead."""

    def renewed(self, until: float) -> None:
        """Handle a renewal: this process leads until this time of the elector's clock, or until a release."""

    def lost(self) -> None:
        """Handle that this process has ceased to lead."""

    def failed(self, error: str) -> None:
        """Handle the failure of a request; `error` is the name of the class of the error."""


class LeaseMetrics(LeaseEvents):
    """The events of an election as Prometheus metrics."""

    def __init__(self, registry: CollectorRegistry, prefix: str, wake: Callable[[], None] = lambda: None) -> None:
        """Register `tidewatch_leader`, `PREFIX_lease_changes_total` and `PREFIX_lease_failures_total`.

        `wake` is called when this process begins or ceases to lead, so that it notices that at once.
        """
        from prometheus_client import Counter, Gauge  # noqa: PLC0415 - commands that run once expose nothing

        self._told: list[Callable[[], object]] = [wake]
        self._leader = Gauge("tidewatch_leader", "1 while this process leads.", registry=registry)
        self._changes = Counter(
            f"{prefix}_lease_changes_total",
            "How often this process became the leader (acquired) or ceased to be (lost).",
            ["change"],
            registry=registry,
        )
        self._failures = Counter(
            f"{prefix}_lease_failures_total",
            "Requests for the Lease that failed, by class of error.",
            ["error"],
            registry=registry,
        )
        for change in ("acquired", "lost"):
            self._changes.labels(change)

    def on_change(self, call: Callable[[], object]) -> None:
        """Call this too when this process begins or ceases to lead, before anything that was registered earlier."""
        self._told.insert(0, call)

    def show(self, is_leader: Callable[[], bool]) -> None:
        """Expose whether this process is the leader, as determined at each scrape."""
        self._leader.set_function(lambda: float(is_leader()))

    def acquired(self) -> None:
        """Count that this process became the leader."""
        self._changes.labels("acquired").inc()
        self._tell()

    def lost(self) -> None:
        """Count a loss of leadership."""
        self._changes.labels("lost").inc()
        self._tell()

    def failed(self, error: str) -> None:
        """Count a request for the Lease that failed; `error` is the name of the error's class."""
        self._failures.labels(error).inc()

    def _tell(self) -> None:
        for call in self._told:
            call()
