"""Metrics of watches: whether they are synced, and how old their objects are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class WatchTelemetry:
    """Receives the state of a reflector; `resource` is `Resource.qualified`.

    This class ignores everything: for commands that run once, and for tests.
    """

    def set_synced(self, resource: str, *, synced: bool) -> None:
        """Set whether the first list of the kind is complete."""

    def set_last_contact(self, resource: str, unix_seconds: float) -> None:
        """Set the time at which the server last sent a list, a change or a bookmark of the kind."""

    def count_failure(self, resource: str, error: str) -> None:
        """Count a list or watch that failed; `error` is the name of the error's class."""

    def set_unreadable(self, resource: str, objects: int) -> None:
        """Set how many objects of the kind are left out because they cannot be read."""

    def remove_kind(self, resource: str) -> None:
        """Remove the state of a kind that is no longer watched."""


class WatchMetrics(WatchTelemetry):
    """The watches as Prometheus metrics."""

    def __init__(self, registry: CollectorRegistry, prefix: str) -> None:
        """Register the metrics, whose names begin with the prefix."""
        from prometheus_client import Counter, Gauge  # noqa: PLC0415 - commands that run once expose nothing

        self._synced = Gauge(
            f"{prefix}_watch_synced",
            "1 if the objects of this kind are known, even while they are listed again.",
            ["resource"],
            registry=registry,
        )
        self._heard = Gauge(
            f"{prefix}_watch_last_heard_timestamp_seconds",
            "When the API server last sent data of this kind, which shows how old the known state can be.",
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

    def set_synced(self, resource: str, *, synced: bool) -> None:
        """Set the gauge to 1 if the kind is synchronized, and to 0 otherwise."""
        self._synced.labels(resource).set(synced)

    def set_last_contact(self, resource: str, unix_seconds: float) -> None:
        """Set the gauge of the time at which the server last sent something about the kind."""
        self._heard.labels(resource).set(unix_seconds)

    def count_failure(self, resource: str, error: str) -> None:
        """Count a list or watch that failed; `error` is the name of the error's class."""
        self._failures.labels(resource, error).inc()

    def set_unreadable(self, resource: str, objects: int) -> None:
        """Set the number of unreadable objects of the kind that are left out."""
        self._left_out.labels(resource).set(objects)

    def remove_kind(self, resource: str) -> None:
        """Remove the gauges of the kind."""
        for gauge in (self._synced, self._heard, self._left_out):
            gauge.remove(resource)
