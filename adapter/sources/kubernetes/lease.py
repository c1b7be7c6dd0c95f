"""Leader election by a Lease: at one moment at most one process leads, and it knows for how long.

    elector = LeaseElector(objects, LeaseSettings(namespace="monitoring", name="recommender", identity=…))
    tasks.running("leader", lambda stop: elector.run(stop.event))
    …
    if elector.is_leader():
        objects.replace(path, scale, Fence(5.0, elector.may_write))
    …
    context.on_stopping(lambda: elector.release(2.0))

What is decided stands in `lease_rules`. Here is what it needs: requests that end in time, a clock, a loop.

A process that loses the Lease goes on trying to get it back; whoever acts on the leadership asks for it each time.
`may_write`, as the permit of a write, is asked when the write's connection stands. A process that is stopped between
that and the first byte may still write late: that is what the object's resourceVersion is for.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from adapter.sources.kubernetes.errors import KubernetesError, NotFoundError, StatusError
from adapter.sources.kubernetes.lease_rules import Create, LeaseTiming, Read, Standing, Wait, Write
from adapter.sources.kubernetes.writing import Fence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.sources.kubernetes.writing import Reply

_log = logging.getLogger(__name__)

_LEAST_SECONDS = 0.05
"""For a request that begins when the leadership is about to end."""


class LeaseClient(Protocol):
    """What is asked of the API server (`writing.ObjectClient`)."""

    def get(self, path: str, *, seconds: float) -> Reply:
        """Return the object."""
        ...

    def create(self, collection: str, document: Mapping[str, Any], *, seconds: float) -> dict[str, Any]:
        """Create an object in a collection."""
        ...

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        """Put an object over the version that it names; sent at most once."""
        ...


class LeaseEvents(Protocol):
    """Who wants to know how the election goes. Called in the elector's own thread."""

    def acquired(self) -> None:
        """Take note that this process leads from now on."""
        ...

    def renewed(self, until: float) -> None:
        """Take note that this process leads until then, in seconds of the elector's clock, unless it releases first."""
        ...

    def lost(self) -> None:
        """Take note that this process leads no more."""
        ...

    def failed(self, error: str) -> None:
        """Count a request that failed; `error` is the name of the error's class."""
        ...


class NoEvents:
    """Drops them."""

    def acquired(self) -> None:
        """Drop it."""

    def renewed(self, until: float) -> None:
        """Drop it."""

    def lost(self) -> None:
        """Drop it."""

    def failed(self, error: str) -> None:
        """Drop it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """Which Lease, and for whom."""

    namespace: str
    name: str
    identity: str
    """No other process may ever have the same: see `unique_identity`."""
    timing: LeaseTiming = field(default_factory=LeaseTiming)

    @property
    def collection(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"


def unique_identity(pod: str) -> str:
    """Return an identity that people recognise and that no other process has, not even the pod's next one."""
    return f"{pod}_{uuid.uuid4()}"


def since_boot() -> float:
    """Return seconds that go on while the machine is suspended, which those of `time.monotonic` do not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class LeaseEffects:
    """What an elector needs of the world beside the API server."""

    clock: Callable[[], float] = since_boot
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    share: Callable[[], float] = random.random


class LeaseElector:
    """One candidate. `is_leader`, `may_write` and `release` may be called from any thread."""

    def __init__(
        self,
        objects: LeaseClient,
        settings: LeaseSettings,
        events: LeaseEvents | None = None,
        effects: LeaseEffects = LeaseEffects(),
    ) -> None:
        """Begin as a follower; nothing is asked before `run`."""
        self._objects = objects
        self._settings = settings
        self._events = events or NoEvents()
        self._effects = effects
        self._standing = Standing(settings.identity, settings.timing)
        self._told_leading = False
        self._told_holder: str | None = None
        self._told_failure = ""
        self._wait_at_least = 0.0
        self._over = threading.Event()
        self._turn = threading.Lock()
        """Held during a request."""

    def is_leader(self) -> bool:
        """Whether this process leads at this moment, judged by its own clock: true also of a server that hangs."""
        return not self._over.is_set() and self._standing.leads(self._effects.clock())

    def may_write(self, seconds: float) -> bool:
        """Whether this process may write for so many more seconds: nobody else leads before they are over."""
        return not self._over.is_set() and self._standing.may_write(self._effects.clock(), seconds)

    def holder(self) -> str:
        """Return who holds the Lease as far as is known; empty where nobody does."""
        seen = self._standing.seen
        return "" if seen is None else seen.holder

    def run(self, stop: threading.Event) -> None:
        """Try to lead, and to go on leading, until the stop or a release."""
        while not stop.is_set() and not self._over.is_set():
            self._round()
            self._note()
            self._sleep(stop)
        self._note()

    def release(self, seconds: float) -> bool:
        """Lead no more from this moment on, and let another lead at once; returns whether the Lease is let go.

        Takes no longer than `seconds`. To be called when no write is under way that the leadership permitted. Where
        the API server does not answer, the Lease runs out by itself.
        """
        self._over.set()
        end = self._effects.clock() + seconds
        if not self._turn.acquire(timeout=max(0.0, seconds)):
            _log.warning("the Lease is not released: a request is still under way", extra=self._fields())
            return False
        try:
            return self._released(end)
        except KubernetesError as error:
            _log.warning("the Lease is not released", extra=self._fields(error=str(error)))
            return False
        finally:
            self._turn.release()

    def _released(self, end: float) -> bool:
        # Once over what is known, once more over what is read.
        for _ in range(2):
            write = self._standing.released(self._effects.wall())
            if write is None:
                self._perform(Read(), self._left(end))
                write = self._standing.released(self._effects.wall())
            if write is None:
                return True
            with suppress(StatusError):
                self._objects.replace(self._settings.path, write.document(), self._fence(self._left(end)))
                _log.info("the Lease is released", extra=self._fields())
                return True
            self._standing = self._standing.failed()
        return False

    def _left(self, end: float) -> float:
        return max(_LEAST_SECONDS, end - self._effects.clock())

    def _round(self) -> None:
        """Look at the Lease or renew it, as client-go's tryAcquireOrRenew does: one look a round at most."""
        self._standing = self._standing.begun(self._effects.clock())
        self._wait_at_least = 0.0
        has_read = False
        while True:
            action = self._standing.next_action(self._effects.clock(), self._effects.wall())
            if isinstance(action, Wait) or (isinstance(action, Read) and has_read):
                return
            has_read = has_read or isinstance(action, Read)
            with self._turn:
                if self._over.is_set():
                    return
                try:
                    self._perform(action, self._request_seconds())
                except KubernetesError as error:
                    self._failed(error)
                    continue
            if not isinstance(action, Read):
                return

    def _request_seconds(self) -> float:
        """Return how long a request may take: the loss of the leadership is noted when it happens."""
        now, until = self._effects.clock(), self._standing.leads_until
        most = self._settings.timing.request_seconds
        return most if until is None or until <= now else max(_LEAST_SECONDS, min(most, until - now))

    def _perform(self, action: Read | Create | Write, seconds: float) -> None:
        settings, effects = self._settings, self._effects
        sent_at = effects.clock()
        match action:
            case Read():
                try:
                    found = self._objects.get(settings.path, seconds=seconds).document
                except NotFoundError:
                    found = None
                self._standing = self._standing.observed(found, effects.clock())
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
        self._standing = self._standing.wrote(lease, sent_at, effects.clock())
        if not self._over.is_set() and self._standing.leads_until is not None:
            self._events.renewed(self._standing.leads_until)

    @staticmethod
    def _fence(seconds: float) -> Fence:
        return Fence(seconds, lambda _: True)

    def _failed(self, error: KubernetesError) -> None:
        self._standing = self._standing.failed()
        self._events.failed(type(error).__name__)
        if isinstance(error, StatusError):
            self._wait_at_least = max(self._wait_at_least, error.retry_after_seconds)
        if type(error).__name__ != self._told_failure:
            self._told_failure = type(error).__name__
            _log.warning("the Lease cannot be read or renewed", extra=self._fields(error=str(error)))

    def _note(self) -> None:
        """Tell of what has changed."""
        leading, holder = self.is_leader(), self.holder()
        if leading:
            self._told_failure = ""
        if leading != self._told_leading:
            self._told_leading = leading
            if leading:
                self._events.acquired()
                _log.info("this process leads", extra=self._fields())
            else:
                self._events.lost()
                level = logging.INFO if self._over.is_set() else logging.WARNING
                _log.log(level, "this process leads no more", extra=self._fields())
        elif holder != self._told_holder:
            _log.info("the Lease has another holder", extra=self._fields())
        self._told_holder = holder

    def _sleep(self, stop: threading.Event) -> None:
        now, timing = self._effects.clock(), self._settings.timing
        leads, until = self._standing.leads(now), self._standing.leads_until
        delay = max(self._wait_at_least, timing.delay(leads=leads, share=self._effects.share()))
        if leads and until is not None:
            delay = min(delay, until - now)
        # A stop that is not a release ends the loop, and the leadership runs out.
        stop.wait(max(0.0, delay))

    def _fields(self, **more: object) -> dict[str, object]:
        lease = f"{self._settings.namespace}/{self._settings.name}"
        return {"fields": {"lease": lease, "identity": self._settings.identity, "holder": self.holder(), **more}}
