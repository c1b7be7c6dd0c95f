"""Kubernetes events on targets: written in the background, without repetitions, at a limited rate.

    events = EventWriter(objects, lookups.uid, count)
    tasks.running("events", events.run)
    …
    events.add(event)

The events are core/v1 Events, since roles that allow `create events` usually mean these. A decision never waits for an
event: if the queue is full, the event is dropped and counted.
"""

from __future__ import annotations

import logging
import secrets
from collections import deque
from typing import TYPE_CHECKING

from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.sources.kubernetes.errors import AdmissionError, ForbiddenError, KubernetesError
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.rate_limit import RateLimit
from recommender.outputs.event_rules import TargetEvent, event_document, namespace_of_events

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from adapter.foundation.sources.kubernetes.writing import Creates
    from recommender.decisions.record import TargetReference

_log = logging.getLogger(__name__)

_MOST_WAITING = 500
_MOST_REMEMBERED = 5000
_REPEAT_SECONDS = 600.0
"""The same event is not written again within this time."""
_FORBIDDEN_SECONDS = 600.0
"""After a namespace has refused an event, no event is sent there for this time."""
_PER_SECOND = 5.0
_CALL_SECONDS = 5.0
_LOOP_SECONDS = 0.5


class EventWriter:
    """Writes events. `add` may be called from any thread."""

    def __init__(
        self,
        objects: Creates,
        uid: Callable[[TargetReference], str],
        count: Callable[[str], None],
        *,
        clock: Clock | None = None,
    ) -> None:
        """`uid` returns the UID of a target, empty if it is not known.

        `count` is called with `created`, `suppressed`, `dropped`, `forbidden` or `error`.
        """
        self._objects = objects
        self._uid = uid
        self._count = count
        self._clock = clock or Clock()
        self._waiting: deque[TargetEvent] = deque()
        self._rate = RateLimit(_PER_SECOND, int(_PER_SECOND), clock=self._clock.monotonic)
        self._states = StateLog(_log)
        self._written_at: dict[TargetEvent, float] = {}
        """Times of writing, in ascending order."""
        self._forbidden_until: dict[str, float] = {}
        """Times by namespace, in ascending order; only the writing thread uses them."""

    def add(self, event: TargetEvent) -> None:
        """Queue the event for writing, or drop and count it if the queue is full. Never blocks."""
        if len(self._waiting) >= _MOST_WAITING:
            self._count("dropped")
        else:
            self._waiting.append(event)

    def suppresses(self, event: TargetEvent) -> bool:
        """Return whether an event repeats one that was written a short time ago, and count it as such. For any thread.

        A caller that limits events asks first, so that repetitions do not use the limit up.
        """
        written_at = self._written_at.get(event)
        if written_at is None or self._clock.monotonic() - written_at >= _REPEAT_SECONDS:
            return False
        self._count("suppressed")
        return True

    def run(self, stop: threading.Event) -> None:
        """Write the events that were added, until `stop` is set."""
        while not stop.wait(_LOOP_SECONDS):
            self.flush()

    def flush(self) -> None:
        """Write queued events until the queue is empty or the rate limit is reached."""
        while self._waiting:
            event = self._waiting[0]
            is_wanted = self._is_wanted(event)
            if is_wanted and not self._rate.take(0.0):
                return
            self._waiting.popleft()
            if is_wanted:
                self._write(event)

    def _is_wanted(self, event: TargetEvent) -> bool:
        """Return whether an event should be sent; if not, count it as `suppressed` or `forbidden`."""
        now = self._clock.monotonic()
        for old, written_at in tuple(self._written_at.items()):
            if now - written_at < _REPEAT_SECONDS and len(self._written_at) <= _MOST_REMEMBERED:
                break
            del self._written_at[old]
        if event in self._written_at:
            self._count("suppressed")
            return False
        for namespace, until in tuple(self._forbidden_until.items()):
            if now < until:
                break
            del self._forbidden_until[namespace]
        if namespace_of_events(event.target) in self._forbidden_until:
            self._count("forbidden")
            return False
        return True

    def _write(self, event: TargetEvent) -> None:
        namespace = namespace_of_events(event.target)
        document = event_document(event, event.uid or self._uid(event.target), self._clock.wall(), secrets.token_hex(8))
        now = self._clock.monotonic()
        try:
            self._objects.create(f"/api/v1/namespaces/{namespace}/events", document, seconds=_CALL_SECONDS)
        except (AdmissionError, ForbiddenError) as error:
            # A quota, a policy or the end of the namespace refuses the next ones too; they must not delay others.
            self._count("forbidden")
            self._forbidden_until[namespace] = now + _FORBIDDEN_SECONDS
            # A message that contained the error would be new each time: events have random names.
            message = (
                f"events are not admitted in namespace {namespace}"
                if isinstance(error, AdmissionError)
                else f"events cannot be written in namespace {namespace}: allow create of events there"
            )
            self._states.failed(namespace, message, level=logging.WARNING, error=str(error))
            return
        except KubernetesError as error:
            # The event is lost, but the next decision that differs has its own.
            self._count("error")
            self._states.failed(
                f"error {namespace}", "events cannot be written", level=logging.WARNING, error=str(error)
            )
            return
        self._written_at[event] = now
        self._count("created")
        self._states.recovered(f"error {namespace}", "events are written again")
        self._states.recovered(namespace, f"events can be written in namespace {namespace} now")
