"""Records when the API server was last heard from, for each watch; metrics show it for each kind.

One kind may have several watches. The kind is synced if all of them are, and its age is that of the oldest.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchTelemetry
from adapter.foundation.time.clock import Clock, Moment

if TYPE_CHECKING:
    from collections.abc import Callable


class WatchRecords:
    """The records of all watches. Thread-safe."""

    def __init__(self, telemetry: WatchTelemetry, clock: Clock | None = None) -> None:
        """Start without watches; `telemetry` exposes each kind."""
        self.telemetry = telemetry
        self.clock = clock or Clock()
        self._lock = threading.Lock()
        self._records: list[WatchRecord] = []

    def record(self, resource: str, first_synced: Callable[[], None]) -> WatchRecord:
        """Return the record of a new watch, which calls `first_synced` after the first list."""
        made = WatchRecord(self, resource, first_synced)
        with self._lock:
            self._records = [*self._records, made]
        return made

    def drop(self, record: WatchRecord) -> None:
        """Forget a watch that has ended."""
        with self._lock:
            self._records = [one for one in self._records if one is not record]
        others = self.of(record.resource)
        if others:
            self.telemetry.set_unreadable(record.resource, sum(one.objects_left_out for one in others))
            self.telemetry.set_synced(record.resource, synced=all(one.is_synced for one in others))
        else:
            self.telemetry.remove_kind(record.resource)

    def of(self, resource: str) -> list[WatchRecord]:
        """Return the records of the watches of a kind."""
        return [one for one in self._records if one.resource == resource]


class WatchRecord(WatchTelemetry):
    """The reports of one watch; written by the thread of the watch. `WatchRecords.drop` ends it."""

    def __init__(self, records: WatchRecords, resource: str, first_synced: Callable[[], None]) -> None:
        self.resource = resource
        self.is_synced = False
        self.objects_left_out = 0
        self._records = records
        self._first_synced = first_synced
        self._heard: Moment | None = None

    @property
    def heard_at(self) -> float | None:
        """When the API server last sent anything, in terms of the current wall clock; None before the first answer."""
        heard = self._heard
        return None if heard is None else heard.as_of(self._records.clock.moment())

    def set_synced(self, resource: str, *, synced: bool) -> None:
        """Record whether the first list is complete."""
        first = synced and not self.is_synced
        self.is_synced = synced
        if others := self._same_kind():
            self._records.telemetry.set_synced(resource, synced=all(one.is_synced for one in others))
        if first:
            self._first_synced()

    def set_last_contact(self, resource: str, unix_seconds: float) -> None:
        """Record when the API server last sent anything."""
        self._heard = Moment(self._records.clock.monotonic(), unix_seconds)
        if others := self._same_kind():
            times = [one.heard_at for one in others if one.heard_at is not None]
            self._records.telemetry.set_last_contact(resource, min(times))

    def count_failure(self, resource: str, error: str) -> None:
        """Count a failure."""
        self._records.telemetry.count_failure(resource, error)

    def set_unreadable(self, resource: str, objects: int) -> None:
        """Record how many objects cannot be read."""
        self.objects_left_out = objects
        if others := self._same_kind():
            self._records.telemetry.set_unreadable(resource, sum(one.objects_left_out for one in others))

    def _same_kind(self) -> list[WatchRecord]:
        """Return the records of the kind, this one included; none if this one has been dropped."""
        others = self._records.of(self.resource)
        return others if self in others else []
