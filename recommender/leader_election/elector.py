"""Leader election by a Lease: at most one process leads at any moment, and knows how long it may lead.

    elector = LeaseElector(objects, LeaseSettings(namespace="monitoring", name="recommender", identity=…))
    tasks.running("leader", elector.run)
    …
    if elector.is_leader():
        objects.replace(path, scale, Fence(5.0, elector.may_write))
    …
    context.on_stopping(lambda: elector.release(2.0))

All decisions are made in `lease_rules`. This module has the effects: requests with deadlines, a clock, and a loop.

A process that loses the Lease keeps trying to get it back, so code that depends on the leadership must check it each
time.

`may_write`, as the permit of a write, is called once the connection of the write is open. A process that is suspended
between this call and the first byte may still write late; the resourceVersion of the object protects against this.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from adapter.foundation.sources.kubernetes.errors import ConflictError, KubernetesError, NotFoundError, StatusError
from adapter.foundation.sources.kubernetes.writing import Fence, GetsAndWrites
from recommender.leader_election.lease_events import LeaseEvents
from recommender.leader_election.lease_rules import Create, Read, Standing, Wait, Write

if TYPE_CHECKING:
    from recommender.leader_election.lease_settings import LeaseSettings

_log = logging.getLogger(__name__)

_LEAST_SECONDS = 0.05
"""The minimum time limit of a request, even if the leadership is about to end."""


def since_boot() -> float:
    """Return the seconds since boot. Unlike `time.monotonic`, this clock also runs while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaseElector:
    """One candidate for leadership. `is_leader`, `may_write` and `release` may be called from any thread."""

    def __init__(self, objects: GetsAndWrites, settings: LeaseSettings, events: LeaseEvents | None = None) -> None:
        """Create an elector that does not lead. It sends no request before `run` is called."""
        self._objects = objects
        self._settings = settings
        self._events = events or LeaseEvents()
        self._standing = Standing(settings.identity, settings.timing)
        self._told_leading = False
        self._told_holder: str | None = None
        self._logged_failure = ""
        self._wait_at_least = 0.0
        self._over = threading.Event()
        self._turn = threading.Lock()
        """The lock that is held during each request."""

    def is_leader(self) -> bool:
        """Return whether this process leads now by its own clock. No request to the API server is needed."""
        return not self._over.is_set() and self._standing.leads(since_boot())

    def may_write(self, seconds: float) -> bool:
        """Return whether this process may begin a write that takes this many seconds.

        It may if it leads, and if no other process can become the leader in that time.
        """
        return not self._over.is_set() and self._standing.may_write(since_boot(), seconds)

    def holder(self) -> str:
        """Return the last known holder of the Lease; empty if there is none, or this process could not renew it."""
        seen = self._standing.seen
        if seen is None or (seen.holder == self._settings.identity and not self.is_leader()):
            return ""
        return seen.holder

    def run(self, stop: threading.Event) -> None:
        """Try to become the leader and to remain so, until `stop` is set or `release` is called."""
        while not stop.is_set() and not self._over.is_set():
            self._round()
            self._note()
            self._sleep(stop)
        self._note()

    def release(self, seconds: float) -> bool:
        """Stop leading at once, and release the Lease so that another process can lead.

        Return True if the Lease was released or was not held. The release takes about `seconds` at most; if the API
        server does not answer in that time, the Lease expires by itself. Call this method only when no write that
        depends on the leadership is in progress.
        """
        self._over.set()
        end = since_boot() + seconds
        if not self._turn.acquire(timeout=max(0.0, seconds)):
            _log.warning("the Lease is not released: a request is still under way", extra=self._fields())
            return False
        try:
            return self._try_release(end)
        except KubernetesError as error:
            _log.warning("the Lease is not released", extra=self._fields(error=str(error)))
            return False
        finally:
            self._turn.release()

    def _try_release(self, end: float) -> bool:
        # The first attempt uses the known version, the second one reads it again.
        for _ in range(2):
            write = self._standing.release_write(datetime.now(UTC))
            if write is None:
                self._perform(Read(), self._seconds_left(end))
                write = self._standing.release_write(datetime.now(UTC))
            if write is None:
                return True
            with suppress(StatusError):
                self._objects.replace(self._settings.path, write.document(), self._fence(self._seconds_left(end)))
                _log.info("the Lease is released", extra=self._fields())
                return True
            self._standing = self._standing.failed()
        return False

    def _seconds_left(self, end: float) -> float:
        return max(_LEAST_SECONDS, end - since_boot())

    def _round(self) -> None:
        """Read or renew the Lease, as client-go's tryAcquireOrRenew does; read it at most once."""
        self._standing = self._standing.begun(since_boot())
        self._wait_at_least = 0.0
        has_read = False
        while True:
            action = self._standing.next_action(since_boot(), datetime.now(UTC))
            if isinstance(action, Wait):
                # The Lease has been read, so a further failure is another one.
                self._logged_failure = ""
                return
            if isinstance(action, Read) and has_read:
                return
            has_read = has_read or isinstance(action, Read)
            with self._turn:
                if self._over.is_set():
                    return
                try:
                    self._perform(action, self._request_seconds())
                except KubernetesError as error:
                    self._note_failure(error)
                    continue
            if not isinstance(action, Read):
                return

    def _request_seconds(self) -> float:
        """Return the time limit of a request in seconds. No request outlasts the leadership, so a loss is noticed."""
        now, until = since_boot(), self._standing.leads_until
        most = self._settings.timing.request_seconds
        return most if until is None or until <= now else max(_LEAST_SECONDS, min(most, until - now))

    def _perform(self, action: Read | Create | Write, seconds: float) -> None:
        settings, sent_at = self._settings, since_boot()
        match action:
            case Read():
                try:
                    found = self._objects.get(settings.path, seconds=seconds).document
                except NotFoundError:
                    found = None
                self._standing = self._standing.observed(found, since_boot())
                return
            case Create(record):
                lease = self._objects.create(
                    settings.collection,
                    {
                        "apiVersion": "coordination.k8s.io/v1",
                        "kind": "Lease",
                        "metadata": {"name": settings.name, "namespace": settings.namespace},
                        "spec": record.spec(),
                    },
                    seconds=seconds,
                )
            case Write():
                lease = self._objects.replace(settings.path, action.document(), self._fence(seconds))
        self._standing = self._standing.wrote(lease, sent_at, since_boot())
        # A leader leads on for a while when its renewals fail, so that leading does not end the failure.
        self._logged_failure = ""
        if not self._over.is_set() and self._standing.leads_until is not None:
            self._events.renewed(self._standing.leads_until)

    @staticmethod
    def _fence(seconds: float) -> Fence:
        return Fence(seconds, lambda _: True)

    def _note_failure(self, error: KubernetesError) -> None:
        self._standing = self._standing.failed()
        self._events.failed(type(error).__name__)
        if isinstance(error, StatusError):
            self._wait_at_least = max(self._wait_at_least, error.retry_after_seconds)
        if type(error).__name__ != self._logged_failure:
            self._logged_failure = type(error).__name__
            if isinstance(error, ConflictError) and not self.is_leader():
                # Of all candidates that try to acquire a released Lease, only one succeeds. A leader has no rivals.
                _log.info("another process has written the Lease first", extra=self._fields())
            else:
                _log.warning("the Lease cannot be read or renewed", extra=self._fields(error=str(error)))

    def _note(self) -> None:
        """Report changes of the leadership and of the holder to the log, and changes of the leadership as events."""
        leading, holder = self.is_leader(), self.holder()
        if leading != self._told_leading:
            self._told_leading = leading
            if leading:
                self._events.acquired()
                _log.info("this process leads", extra=self._fields())
            else:
                self._events.lost()
                level = logging.INFO if self._over.is_set() else logging.WARNING
                _log.log(level, "this process no longer leads", extra=self._fields())
        elif holder != self._told_holder:
            _log.info("the Lease has another holder", extra=self._fields())
        self._told_holder = holder

    def _sleep(self, stop: threading.Event) -> None:
        now, standing = since_boot(), self._standing
        # A server, or a gateway before it, may ask for minutes. As with client-go, that costs one renew deadline.
        asked = min(self._wait_at_least, self._settings.timing.renew_deadline_seconds)
        share = random.random()  # noqa: S311 - spreads candidates, hides nothing
        delay = max(asked, standing.seconds_to_next_round(now, share))
        if standing.leads(now) and standing.leads_until is not None:
            delay = min(delay, standing.leads_until - now)
        # After a stop without a release, the leadership expires.
        stop.wait(max(0.0, delay))

    def _fields(self, **more: object) -> dict[str, object]:
        lease = f"{self._settings.namespace}/{self._settings.name}"
        return {"fields": {"lease": lease, "identity": self._settings.identity, "holder": self.holder(), **more}}
