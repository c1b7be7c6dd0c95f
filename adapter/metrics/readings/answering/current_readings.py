"""Returns the reading that answers a request now: the newest in memory if it is young enough, or the first one.

Requests only wait for a first reading, for the first list of a kind of objects, or for the first look-ups of series.
Few may wait at once, and not for long, because a hanging Prometheus must not occupy all threads of the server, nor the
places of requests that wait for another Prometheus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from adapter.foundation.sources.objects import ObjectsNotSyncedError, ObjectSource
from adapter.foundation.sources.prometheus.backends.backend import Backend, backend_text
from adapter.foundation.sources.prometheus.errors import shorten_message
from adapter.foundation.time.timestamps import rfc3339
from adapter.metrics.readings.answering.waiting_requests import NO_PROMETHEUS, WaitingRequests
from adapter.metrics.readings.errors import AnswerTooOldError, FirstAnswerPendingError
from adapter.metrics.readings.public_reasons import reason_for_requesters

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.objects.resources import Resource
    from adapter.metrics.readings.asking.demand import DemandEntry
    from adapter.metrics.readings.asking.queries import Reading
    from adapter.metrics.readings.asking.query_scheduler import QueryScheduler
    from adapter.metrics.readings.reading_sources import ReadingSources

T = TypeVar("T")


class CurrentReadings:
    """Returns readings to requests. Thread-safe."""

    def __init__(self, sources: ReadingSources, scheduler: QueryScheduler) -> None:
        """Start without waiting requests."""
        self._scheduler = scheduler
        self._settings = sources.settings
        self._clock = sources.clock
        self._waiting = WaitingRequests(sources.settings, sources.backends.number)

    def current(self, entry: DemandEntry, until: float) -> Reading:
        """Return the reading that answers a request now; wait for a first one until a time in monotonic seconds.

        Raises AnswerTooOldError if the newest reading is too old, or the error that kept a first one from arriving.
        """
        reading = entry.scope.query.reading or self._first_reading(entry, until)
        if self.age(reading) > self._settings.max_answer_age_seconds:
            raise AnswerTooOldError(self._too_old(entry, reading))
        return reading

    def look_when_listed(self, objects: ObjectSource, resource: Resource, until: float, look: Callable[[], T]) -> T:
        """Return what `look` returns; waits for the first list of that kind of objects, but not longer than `until`.

        Raises ObjectsError, also if the list does not arrive in time or too many requests already wait for one.
        """
        try:
            return look()
        except ObjectsNotSyncedError:
            # A list serves all namespaces, so the requests that wait for one are counted together.
            if not self._waiting.has_joined(NO_PROMETHEUS, None):
                raise
        try:
            objects.await_first_list(resource, max(0.0, until - self._clock.monotonic()))
        finally:
            self._waiting.leave(NO_PROMETHEUS, None)
        return look()

    def all_looked_up(self, namespace: str | None, looked_up: Callable[[float], bool]) -> None:
        """Wait for the first look-ups of series, so that a metric that they will find is not reported as missing.

        `looked_up` waits for some seconds and returns whether they have ended. Raises FirstAnswerPendingError, also if
        too many requests already wait.
        """
        if looked_up(0.0):
            return
        joined = self._waiting.has_joined(NO_PROMETHEUS, namespace)
        try:
            if joined and looked_up(self._settings.first_answer_wait_seconds):
                return
        finally:
            if joined:
                self._waiting.leave(NO_PROMETHEUS, namespace)
        raise FirstAnswerPendingError(
            "it is not known, and the series of some rules are still being looked up for the first time: try again in "
            "a moment"
        )

    def age(self, reading: Reading) -> float:
        """Return the age of a reading in seconds."""
        return reading.evaluated.age(self._clock.wall(), self._clock.monotonic())

    def _first_reading(self, entry: DemandEntry, until: float) -> Reading:
        """Wait for the running query; raises at once if it has failed before."""
        query = self._scheduler.query_of(entry)
        if query.settled.is_set() and query.failure is not None:
            raise query.failure.to_error()
        backend, namespace = query.key.backend, entry.request.namespace
        if not self._waiting.has_joined(backend, namespace):
            raise self._no_place_error(entry, backend)
        try:
            return self._wait(entry, until)
        finally:
            self._waiting.leave(backend, namespace)

    def _no_place_error(self, entry: DemandEntry, backend: Backend | None) -> FirstAnswerPendingError:
        """Return the error for a request that needs a first reading when no place to wait is left."""
        limits = self._waiting.limits()
        return FirstAnswerPendingError(
            f"{entry.request.metric}: {backend_text(backend)} is queried for it for the first time, and at most "
            f"{limits.most} requests wait at once, {limits.most_per_namespace} of each namespace: "
            "try again in a moment"
        )

    def _wait(self, entry: DemandEntry, until: float) -> Reading:
        while True:
            query = self._scheduler.query_of(entry)
            if query.reading is not None:
                return query.reading
            if query.failure is not None:
                raise query.failure.to_error()
            if not query.settled.wait(max(0.0, until - self._clock.monotonic())):
                wait = self._settings.first_answer_wait_seconds
                late = f"{backend_text(query.key.backend)} did not answer within {wait:g} s, and the query continues"
                text = shorten_message(query.key.planned.text)
                raise FirstAnswerPendingError(f"{entry.request.metric}: {late}: {text}")

    def _too_old(self, entry: DemandEntry, reading: Reading) -> str:
        """Return why a reading is not served.

        It states a time and no age: an HPA repeats the message at each sync, and only events with the same words are
        counted as one.
        """
        scope = entry.scope
        query = scope.query if scope.query.failure else scope.wanted
        reason = reason_for_requesters(query.failure, query.kind) if query.failure else "the last refresh has not ended"
        last, limit = rfc3339(reading.evaluated.wall), self._settings.max_answer_age_seconds
        return f"{reason}; the last good answer is from {last}, and answers older than {limit:g} s are not served"
