"""Keeps a store of objects of one kind equal to what the cluster has: a list, then a watch from its version.

The protocol is described under "Efficient detection of changes" in the Kubernetes API concepts. A watch from the
resourceVersion of a list (`collection_list`) reports every later change; bookmarks advance that version while nothing
changes. If the version has been compacted (410), the objects are listed again. A list is never older than what is
known, so a deleted object does not reappear.

While the server was away, its data may have been replaced by those of a backup. A watch from a version that is still to
come is accepted, and reports nothing until the server reaches that version. So after a failure, and after a watch that
was silent for too long, the current version is read first; if it is older than the known one, the objects are listed
again.

A proxy may cut each watch at once, or keep its events back. So the objects are also listed after watches that were
opened and broke off without any event, not even a bookmark. Another proxy cuts only watches that are quiet: after
watches that were open for a while, the objects are listed less often than that.

While the server cannot be reached, the store keeps its objects: `synced` remains true, and a metric shows when the
server was last heard. The same holds for a short time if the server refuses the kind: kube-apiserver answers 403 to
everybody, and 404 for kinds of CustomResourceDefinitions, from its first connection until it has read its roles and
definitions.
"""

from __future__ import annotations

import logging
import math
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from adapter.foundation.sources.kubernetes.errors import (
    ExpiredError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    ServerError,
    SilentError,
    StatusError,
    ThrottledError,
    UnauthorizedError,
    UnreachableError,
)
from adapter.foundation.sources.kubernetes.lists.list_watch import precedes
from adapter.foundation.sources.kubernetes.watches.collection_list import CollectionList
from adapter.foundation.sources.kubernetes.watches.stored_objects import StoredObjects
from adapter.foundation.sources.kubernetes.watches.streams import CollectionReader, in_rounds, lines_of, when_set
from adapter.foundation.sources.stores import KubernetesObject, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.kubernetes.lists.list_checks import Doubt
    from adapter.foundation.sources.kubernetes.lists.list_watch import ListWatch, WatchSettings
    from adapter.foundation.time.backoff import Backoff

logger = logging.getLogger(__name__)

_WINDOW_GRACE_SECONDS = 30.0
_TOO_SHORT_SECONDS = 1.0
_FAILURES_OF_AN_OUTAGE = 3
"""Attempts in a row that did not reach the server; fewer may come from one of several servers behind an address."""
_WITHOUT_EVENT_OF_A_PROXY = 2
"""Watches in a row that broke off without an event; fewer may be due to a server that ended just then."""
_UNHEARD_SECONDS = 120.0
"""How long changes may go unseen if watches stay open, but bring no event: a list of many objects is expensive."""

T = TypeVar("T", bound=KubernetesObject)


class Reflector(Generic[T]):
    """Lists and watches a collection while `run` runs, and writes its objects to a store."""

    def __init__(
        self,
        client: KubernetesClient,
        list_watch: ListWatch,
        form: type[T],
        store: Store[T],
        settings: WatchSettings,
        on_failure: Callable[[KubernetesError], None] | None = None,
        doubt: Doubt[T] | None = None,
    ) -> None:
        """Each object is decoded as `form`, a msgspec Struct; nothing else may write to `store`.

        `doubt` decides which lists are believed only when a second one confirms them half a minute later.

        `on_failure` is called by the thread of `run` whenever a list or watch fails, but not for a version that has
        expired.
        """
        self.resource = list_watch.resource
        self._list_watch = list_watch
        self._settings = settings
        self._on_failure = on_failure
        self._reader = CollectionReader(client, list_watch, settings)
        self._objects = StoredObjects(list_watch, form, store, settings)
        self._list = CollectionList(self._reader, list_watch, self._objects, settings, doubt)
        self._version: str | None = None
        self._was_away = False
        """Whether the server failed, was silent or was not reached, and its current version has not been read since."""
        self.synced = False
        """Whether a whole list has been stored. Stays true while the objects are listed again."""
        self._listed_since_watch = False
        """Whether the objects have been listed since a watch was last opened."""
        self._without_event = 0
        """How many watches in a row have been opened and have not brought an event; the current one is counted."""
        self._logged: tuple[type[KubernetesError], bool] | None = None
        """The failure in the log that has not ended since, and whether a watch was open when it came."""
        self._stood_since: float | None = None
        self._opened_at = self._listed_at = -math.inf
        """When the last watch was opened, and when the last list was stored."""
        self.failure: KubernetesError | None = None
        """Why the last list or watch failed; None if it succeeded."""
        self._unreached = 0
        """How many attempts in a row have not reached the server."""
        self._refused: tuple[ForbiddenError | NotFoundError, float] | None = None
        self.tried = threading.Event()
        """Set once the first list is in the store, or has failed and is not waited for any more."""
        settings.telemetry.set_synced(self.resource.qualified, synced=False)

    @property
    def refusal(self) -> ForbiddenError | NotFoundError | None:
        """Why the server refuses this kind; None if it does not, or if the refusal may end in a moment.

        A refusal stays in force while the server cannot be reached, since only an answer shows that it has ended.
        """
        if self._refused is None:
            return None
        refusal, since = self._refused
        lasts = self._settings.clock() - since >= self._settings.refused_seconds
        return refusal if lasts or not self.synced else None

    @property
    def unconfirmed(self) -> int:
        """How many known objects are kept although the last list lacks them, until a second list confirms it."""
        return self._list.unconfirmed

    @property
    def began_empty(self) -> bool:
        """Whether the first list was empty, and no second list has confirmed that or shown objects."""
        return self._list.began_empty

    @property
    def unreadable_by_namespace(self) -> Mapping[str | None, int]:
        """How many objects are left out because they cannot be read, by namespace; None if that cannot be read."""
        return self._objects.left_out.counts

    def unreadable(self, namespace: str | None) -> int:
        """Return how many objects of a namespace (None: of all) are left out because they cannot be read."""
        return self._objects.left_out.count(namespace)

    def run(self, stop: threading.Event) -> None:
        """List and watch until `stop` is set, which also ends a read that is waiting."""
        with when_set(stop, self._reader.end):
            in_rounds(stop, self._settings, self._round, self._note_failure)

    def _round(self, backoff: Backoff) -> float:
        """List if necessary, then watch for one window. Return how many seconds to wait before the next round."""
        self._stood_since = None
        if self._version is None or self._must_list(self._version):
            self._version = self._list.read()
            self._was_away = False
            self._now_synced()
        changed = self._watch(self._version)
        stood = self._stood_seconds()
        if stood >= self._settings.healthy_seconds:
            backoff.reset()
        # If a watch ends at once and without an event, the server is in trouble, although it reports no error.
        return backoff.delay() if stood < _TOO_SHORT_SECONDS and not changed else 0.0

    def _must_list(self, version: str) -> bool:
        """Return whether a watch may not resume from the version. Raises KubernetesError."""
        if not self._settings.resumes or self._list.due_seconds == 0:
            return True
        if self._may_lack_changes():
            # One attempt for each watch that was opened: the next one may bring events where a list is refused.
            self._listed_since_watch = True
            return True
        if not self._was_away:
            return False
        newest = self._list.newest_version()
        self._was_away = False
        if not precedes(newest, version):
            return False
        message = "%s: the server is at version %s, before %s, as after a restore from a backup: listing again"
        logger.warning(message, self.resource.qualified, newest, version)
        return True

    def _may_lack_changes(self) -> bool:
        """Return whether the last watches brought no event, so that only a list shows what has changed."""
        if self._without_event < _WITHOUT_EVENT_OF_A_PROXY or self._listed_since_watch:
            return False
        now = self._settings.clock()
        was_short = now - self._opened_at < self._settings.healthy_seconds
        return was_short or now - self._listed_at >= _UNHEARD_SECONDS

    def _note_failure(self, error: KubernetesError, backoff: Backoff) -> float:
        """Record the failure, decide whether to list again, and return how many seconds to wait."""
        is_refusal = isinstance(error, (ForbiddenError, NotFoundError))
        # A server that has just started refuses everybody for a moment. Attempts that did not reach it cost it nothing.
        has_returned = is_refusal and self._unreached >= _FAILURES_OF_AN_OUTAGE
        self._unreached = self._unreached + 1 if isinstance(error, UnreachableError) else 0
        if has_returned or self._stood_seconds() >= self._settings.healthy_seconds:
            backoff.reset()
        if not _resumable(error, backoff.failures):
            self._version = None
        # A server that shuts down answers 429, and may be another one at the next attempt.
        self._was_away = True
        self._settings.telemetry.count_failure(self.resource.qualified, type(error).__name__)
        # A server that is away is news, although watches of a quiet kind broke off before.
        level, cause = logging.DEBUG, (type(error), self._stood_since is not None)
        if cause != self._logged and not isinstance(error, ExpiredError):
            level, self._logged = logging.WARNING, cause
        if isinstance(error, (ForbiddenError, NotFoundError)):
            self._refused = (error, self._refused[1] if self._refused else self._settings.clock())
        self.failure = error
        if is_refusal or not self._settings.retries_first_list:
            self.tried.set()
        if self._on_failure is not None and not isinstance(error, ExpiredError):
            self._on_failure(error)
        logger.log(level, "watch of %s failed, will retry: %s", self.resource.qualified, error)
        least = self._settings.refused_wait_seconds if is_refusal else 0.0
        delay = backoff.delay(max(least, error.retry_after_seconds if isinstance(error, StatusError) else 0.0))
        if isinstance(error, UnreachableError) and delay > max(self._settings.away_seconds):
            return self._settings.uniform(*self._settings.away_seconds)
        return delay

    def _watch(self, version: str) -> bool:
        """Store changes until the server ends the watch; return whether there were any events."""
        window = self._settings.uniform(*self._settings.window_seconds)
        if (due := self._list.due_seconds) is not None:
            window = min(window, max(1.0, math.ceil(due)))
        query = self._list_watch.watch_query(version, window)
        changed = False
        with self._reader.open(query, self._list_watch.accept.of_watch, self._settings.silence_seconds) as answer:
            self._opened_watch()
            try:
                for lines in lines_of(answer.pieces(window + _WINDOW_GRACE_SECONDS)):
                    with self._settings.pace.slice():
                        for line in lines:
                            self._version = self._objects.apply(line)
                            changed = True
                    self._reader.note_heard()
                    if changed:
                        self._note_working_watch()
                if self._stood_seconds() >= _TOO_SHORT_SECONDS:
                    self._note_working_watch()
            except SilentError:
                # Bookmarks would have come: the server is gone, or has not reached the version of this watch yet.
                self._was_away = True
                logger.debug("watch of %s was silent for too long, reopening it", self.resource.qualified)
        return changed

    def _now_synced(self) -> None:
        # While no watch can be opened, or none brings an event, each retry lists the objects again.
        is_repeated = self._listed_since_watch or self._without_event >= _WITHOUT_EVENT_OF_A_PROXY
        level = logging.DEBUG if is_repeated else logging.INFO
        self._listed_since_watch = True
        self._listed_at = self._settings.clock()
        self.synced = True
        self.tried.set()
        self._settings.telemetry.set_synced(self.resource.qualified, synced=True)
        logger.log(level, "%s: %d listed", self.resource.qualified, len(self._objects))

    def _stood_seconds(self) -> float:
        """Return for how many seconds the last watch was open, or has been so far; 0 if it could not be opened."""
        return 0.0 if self._stood_since is None else self._settings.clock() - self._stood_since

    def _opened_watch(self) -> None:
        self._stood_since = self._opened_at = self._settings.clock()
        self._listed_since_watch = False
        self._reader.note_heard()
        self._refused = None
        self._unreached = 0
        self.failure = None
        self._without_event += 1
        if self._without_event <= _WITHOUT_EVENT_OF_A_PROXY:
            self._log_end_of_failure()

    def _note_working_watch(self) -> None:
        """Note that the current watch works: it has brought an event, or it has ended as requested without one."""
        self._without_event = 0
        self._log_end_of_failure()

    def _log_end_of_failure(self) -> None:
        if self._logged is not None:
            logger.info("watch of %s is open again", self.resource.qualified)
            self._logged = None


def _resumable(error: KubernetesError, failures: int) -> bool:
    """Return whether the watch may resume from its last version; `failures` counts the failures before this one.

    A server may fail repeatedly because of the version in the request; a new list does not name one.
    """
    if isinstance(error, ServerError):
        return failures == 0
    return isinstance(error, (UnreachableError, ThrottledError, UnauthorizedError))
