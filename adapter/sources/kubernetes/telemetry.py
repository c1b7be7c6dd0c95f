"""What the watches tell about themselves: are they there, and how old is what they know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
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

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        from prometheus_client import Counter, Gauge  # noqa: PLC0415 - commands that run once expose nothing

        self._synced = Gauge(
            "tidewatch_adapter_watch_synced",
            "1 when the objects of this kind are known, also while they are listed anew.",
            ["resource"],
            registry=registry,
        )
        self._heard = Gauge(
            "tidewatch_adapter_watch_last_heard_timestamp_seconds",
            "When the API server last said something about this kind: how old the known state can be.",
            ["resource"],
            registry=registry,
        )
        self._failures = Counter(
            "tidewatch_adapter_watch_failures_total",
            "Lists and watches of this kind that failed, by class of error.",
            ["resource", "error"],
            registry=registry,
        )
        self._left_out = Gauge(
            "tidewatch_adapter_watch_unreadable_objects",
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
