"""What the watches tell about themselves (are they there, and how old is what they know), and an election."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry


class WatchTelemetry(Protocol):
    """Where a reflector puts its state; `resource` is `Resource.qualified`."""

    def synced(self, resource: str, *, synced: bool) -> None:
        """Say whether the first list of the kind stands."""
        ...

    def heard(self, resource: str, unix_seconds: float) -> None:
        """Say when the server last spoke of the kind: a list, a change, or that there was none."""
        ...

    def failed(self, resource: str, error: str) -> None:
        """Count a list or watch that failed; `error` is the name of the error's class."""
        ...

    def left_out(self, resource: str, objects: int) -> None:
        """Say how many objects of the kind are left out now, since they cannot be read."""
        ...


class NoTelemetry:
    """For commands that run once, and tests."""

    def synced(self, resource: str, *, synced: bool) -> None:
        """Drop it."""

    def heard(self, resource: str, unix_seconds: float) -> None:
        """Drop it."""

    def failed(self, resource: str, error: str) -> None:
        """Drop it."""

    def left_out(self, resource: str, objects: int) -> None:
        """Drop it."""


class WatchMetrics:
    """The watches as Prometheus metrics."""

    def __init__(self, registry: CollectorRegistry, prefix: str) -> None:
        """Register the metrics, whose names begin with the prefix."""
        from prometheus_client import Counter, Gauge  # noqa: PLC0415 - commands that run once expose nothing

        self._synced = Gauge(
            f"{prefix}_watch_synced",
            "1 when the objects of this kind are known, also while they are listed anew.",
            ["resource"],
            registry=registry,
        )
        self._heard = Gauge(
            f"{prefix}_watch_last_heard_timestamp_seconds",
            "When the API server last said something about this kind: how old the known state can be.",
            ["resource"],
            registry=registry,
        )
        self._failures = Counter(
            f"{prefix}_watch_failures_total",
            "Lists and watches of this kind that failed, by class of error.",
            ["resource", "error"],
            registry=registry,
        )
        self._left_out = Gauge(
            f"{prefix}_watch_unreadable_objects",
            "Objects of this kind that are left out because they cannot be read; the log names them.",
            ["resource"],
            registry=registry,
        )

    def synced(self, resource: str, *, synced: bool) -> None:
        """Set the gauge to 1 or 0."""
        self._synced.labels(resource).set(synced)

    def heard(self, resource: str, unix_seconds: float) -> None:
        """Set the time."""
        self._heard.labels(resource).set(unix_seconds)

    def failed(self, resource: str, error: str) -> None:
        """Count the failure."""
        self._failures.labels(resource, error).inc()

    def left_out(self, resource: str, objects: int) -> None:
        """Set the gauge."""
        self._left_out.labels(resource).set(objects)


class LeaseMetrics:
    """An election as Prometheus metrics; takes its events (`lease.LeaseEvents`)."""

    def __init__(self, registry: CollectorRegistry, prefix: str) -> None:
        """Register `tidewatch_leader`, `PREFIX_lease_changes_total` and `PREFIX_lease_failures_total`."""
        from prometheus_client import Counter, Gauge  # noqa: PLC0415 - commands that run once expose nothing

        self._leader = Gauge("tidewatch_leader", "1 while this process leads.", registry=registry)
        self._changes = Counter(
            f"{prefix}_lease_changes_total",
            "How often this process began or ceased to lead: acquired, lost.",
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

    def show(self, is_leader: Callable[[], bool]) -> None:
        """Expose whether this process leads at the moment of a scrape."""
        self._leader.set_function(lambda: float(is_leader()))

    def acquired(self) -> None:
        """Count it."""
        self._changes.labels("acquired").inc()

    def renewed(self, until: float) -> None:
        """Drop it."""

    def lost(self) -> None:
        """Count it."""
        self._changes.labels("lost").inc()

    def failed(self, error: str) -> None:
        """Count the failure."""
        self._failures.labels(error).inc()
