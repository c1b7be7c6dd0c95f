"""Keeps a store of objects of one kind equal to what the cluster has: a list, then a watch from its version.

The protocol is described under "Efficient detection of changes" in the Kubernetes API concepts. A list without a
resourceVersion is the most recent state, and all its pages show the same moment; pods are streamed instead where the
server can (`streamed_list`). A watch from its resourceVersion reports every later change; bookmarks advance that
version while nothing changes. If the version has been compacted (410), the objects are listed again. A list is never
older than what is known, so a deleted object does not reappear.

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

import msgspec

from adapter.foundation.objects.decoders import decoder_of
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
    UnexpectedResponseError,
    UnreachableError,
    error_of_event,
)
from adapter.foundation.sources.kubernetes.lists.items import ItemsError, JsonList
from adapter.foundation.sources.kubernetes.lists.list_checks import (
    Confirmation,
    UnreadObjects,
    named,
    refuse_other_kind,
)
from adapter.foundation.sources.kubernetes.lists.list_watch import NO_VERSIONS, Versioned, WatchEvent
from adapter.foundation.sources.kubernetes.lists.nesting import TOO_DEEP, is_cut, shallow
from adapter.foundation.sources.kubernetes.lists.streamed_list import (
    STREAM_SILENCE_SECONDS,
    InitialEvents,
    NotStreamedError,
    is_refused,
)
from adapter.foundation.sources.kubernetes.watches.streams import Interruptible, in_rounds, lines_of, when_set
from adapter.foundation.sources.stores import KubernetesObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from adapter.foundation.sources.kubernetes.client import Answer, KubernetesClient
    from adapter.foundation.sources.kubernetes.lists.list_checks import Doubt
    from adapter.foundation.sources.kubernetes.lists.list_watch import ListWatch, WatchSettings
    from adapter.foundation.sources.stores import Replacement, Store
    from adapter.foundation.time.backoff import Backoff

logger = logging.getLogger(__name__)

_LIST_SECONDS = 60.0
_WINDOW_GRACE_SECONDS = 30.0
_TOO_SHORT_SECONDS = 1.0

_MOST_PAGES = 4_000
"""Two million objects, ten times the largest supported cluster."""
_LARGEST_PAGE_BYTES = 256 << 20
"""A server that does not support pages sends all objects at once."""

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
        """Each object is decoded as `form`, a msgspec Struct; nobody else may write to `store`.

        `doubt` decides which lists are believed only when a second one, half a minute later, agrees.

        `on_failure` is called by the thread of `run` whenever a list or watch fails, but not for a version that has
        expired.
        """
        self.resource = list_watch.resource
        self._client = client
        self._list_watch = list_watch
        self._form = form
        self._store = store
        self._confirmation = Confirmation(doubt, settings.clock)
        self._began_empty = False
        self._settings = settings
        self._on_failure = on_failure
        self._path = list_watch.path
        self._events = decoder_of(WatchEvent)
        self._items = decoder_of(form)
        self._versions = decoder_of(Versioned)
        self._left_out = UnreadObjects(self.resource.qualified, settings.telemetry)
        self._streams = list_watch.is_large
        self._version: str | None = None
        self._synced = False
        self._stood_since: float | None = None
        self._failure: KubernetesError | None = None
        self._refused: tuple[ForbiddenError | NotFoundError, float] | None = None
        self._reads = Interruptible()
        self.tried = threading.Event()
        """Set once the first list is in the store, or has failed."""
        settings.telemetry.synced(self.resource.qualified, synced=False)

    @property
    def synced(self) -> bool:
        """Whether a whole list has been stored. Stays true while the objects are listed again."""
        return self._synced

    @property
    def failure(self) -> KubernetesError | None:
        """Why the last list or watch failed; None if it succeeded."""
        return self._failure

    @property
    def refusal(self) -> ForbiddenError | NotFoundError | None:
        """Why the server refuses this kind to us; None if it does not, or if the refusal may end in a moment.

        It stays known while the server cannot be reached: only an answer shows that it has ended.
        """
        if self._refused is None:
            return None
        refusal, since = self._refused
        lasts = self._settings.clock() - since >= self._settings.refused_seconds
        return refusal if lasts or not self._synced else None

    @property
    def unconfirmed(self) -> int:
        """How many known objects are kept although the last list lacks them, until a second one agrees."""
        return self._confirmation.kept

    @property
    def began_empty(self) -> bool:
        """Whether the first list was empty, and no second one has agreed or shown objects."""
        return self._began_empty

    def unreadable(self, namespace: str | None) -> int:
        """Return how many objects of a namespace (None: of all) are left out because they cannot be read."""
        return self._left_out.count(namespace)

    def run(self, stop: threading.Event) -> None:
        """List and watch until `stop` is set, which also ends a read that is waiting."""
        with when_set(stop, self._reads.end):
            in_rounds(stop, self._settings, self._round, self._note_failure)

    def _round(self, backoff: Backoff) -> float:
        """List if necessary, then watch for one window. Return how many seconds to wait before the next round."""
        self._stood_since = None
        if self._version is None or not self._settings.resumes or self._confirmation.due_seconds == 0:
            self._version = self._list()
        changed = self._watch(self._version)
        stood = self._stood_seconds()
        if stood >= self._settings.healthy_seconds:
            backoff.reset()
        # If a watch ends at once and without an event, the server is in trouble, although it reports no error.
        return backoff.delay() if stood < _TOO_SHORT_SECONDS and not changed else 0.0

    def _note_failure(self, error: KubernetesError, backoff: Backoff) -> float:
        """Record the failure, decide whether to list again, and return how many seconds to wait."""
        if self._stood_seconds() >= self._settings.healthy_seconds:
            backoff.reset()
        if not _resumable(error, backoff.failures):
            self._version = None
        self._settings.telemetry.failed(self.resource.qualified, type(error).__name__)
        level = (
            logging.DEBUG if type(error) is type(self._failure) or isinstance(error, ExpiredError) else logging.WARNING
        )
        if isinstance(error, (ForbiddenError, NotFoundError)):
            self._refused = (error, self._refused[1] if self._refused else self._settings.clock())
        self._failure = error
        self.tried.set()
        if self._on_failure is not None and not isinstance(error, ExpiredError):
            self._on_failure(error)
        logger.log(level, "watch of %s failed, will retry: %s", self.resource.qualified, error)
        least = self._settings.refused_wait_seconds if isinstance(error, (ForbiddenError, NotFoundError)) else 0.0
        return backoff.delay(max(least, error.retry_after_seconds if isinstance(error, StatusError) else 0.0))

    def _list(self) -> str:
        """Replace the content of the store by a new list; return the resourceVersion of the list."""
        if self._streams:
            # Whatever goes wrong, the next list is one in pages, which every server can send.
            self._streams = False
            try:
                version = self._list_stream()
            except NotStreamedError as error:
                logger.info("list of %s is not streamed, it is read in pages: %s", self.resource.qualified, error)
            else:
                self._streams = True
                return version
        try:
            return self._list_pages()
        except ExpiredError:
            # The server keeps pages for five minutes. The first pages are of no use without the others.
            logger.info("list of %s expired before its last page, starting again", self.resource.qualified)
            return self._list_pages()

    def _list_pages(self) -> str:
        replacement = self._store.replacement()
        self._left_out.begin_list()
        query = self._list_watch.list_query(self._settings.page_size)
        asked: set[str] = set()
        readable = 0
        while True:
            page = self._page(query)
            for item in self._items_of(page):
                replacement.put(item)
                readable += 1
            refuse_other_kind(self._path, self.resource, page.head, metadata_alone=self._list_watch.metadata_alone)
            self._note_heard()
            metadata = page.head.metadata
            if not metadata.next_page:
                break
            self._refuse_endless(asked, metadata.next_page)
            # A continue token contains the version of the first page, so the query must not name one.
            query["continue"] = metadata.next_page
        if metadata.resource_version in NO_VERSIONS:
            raise UnexpectedResponseError(f"GET {self._path}: a list without a resourceVersion")
        self._replace(replacement, readable)
        return metadata.resource_version

    def _replace(self, replacement: Replacement[T], readable: int) -> None:
        """Put a complete list in the place of the store's content."""
        if not readable and self._left_out.listed():
            raise UnexpectedResponseError(f"GET {self._path}: not a list of objects: none of its items can be read")
        if self._confirmation.believes(replacement, readable):
            replacement.commit()
        else:
            message = "%s: %d known objects are not in the list and are kept until a second list agrees"
            logger.warning(message, self.resource.qualified, self._confirmation.kept)
        # After the commit, so that nobody sees the store of before without the doubt.
        self._began_empty = self._confirmation.began_empty
        self._left_out.commit_list()
        self._now_synced()

    def _list_stream(self) -> str:
        """List by the initial events of a watch. Raises NotStreamedError if the server does not send any."""
        replacement = self._store.replacement()
        self._left_out.begin_list()
        initial = InitialEvents(self._list_watch)
        readable = 0
        query = self._list_watch.stream_query(_LIST_SECONDS)
        try:
            with self._open_stream(query, self._list_watch.accept.of_watch, STREAM_SILENCE_SECONDS) as answer:
                for lines in lines_of(answer.pieces(_LIST_SECONDS)):
                    with self._settings.pace.slice():
                        for item in self._readable(initial.objects(lines)):
                            replacement.put(item)
                            readable += 1
                    self._note_heard()
                    if initial.version:
                        break
        except SilentError as error:
            raise NotStreamedError(str(error)) from error
        except StatusError as error:
            if is_refused(error):
                raise NotStreamedError(str(error)) from error
            raise
        if not initial.version:
            raise NotStreamedError("the watch ended before the bookmark that ends the present objects")
        self._replace(replacement, readable)
        return initial.version

    def _readable(self, contents: Iterator[msgspec.Raw]) -> Iterator[T]:
        for content in contents:
            try:
                yield self._item(content)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                self._left_out.from_list(content, str(error))

    def _items_of(self, page: JsonList[T]) -> Iterator[T]:
        try:
            for items in page.batches(self._settings.pace):
                yield from items
        except ItemsError as error:
            raise UnexpectedResponseError(f"GET {self._path}: not a list of objects: {error}") from error

    def _refuse_endless(self, asked: set[str], token: str) -> None:
        """Record a continue token; raises UnexpectedResponseError if the pages would never end."""
        if token in asked:
            message = "the list does not end: a continue token is repeated"
            raise UnexpectedResponseError(f"GET {self._path}: {message}")
        asked.add(token)
        if len(asked) >= _MOST_PAGES:
            raise UnexpectedResponseError(
                f"GET {self._path}: the list does not end: it has more than {_MOST_PAGES} pages"
            )

    def _page(self, query: Mapping[str, str]) -> JsonList[T]:
        with self._open_stream(query, self._list_watch.accept.of_list) as answer:
            body = answer.whole(_LIST_SECONDS, _LARGEST_PAGE_BYTES)
        return JsonList(body, self._form, unreadable=self._left_out.from_list)

    def _watch(self, version: str) -> bool:
        """Store changes until the server ends the watch; return whether there were any events."""
        window = self._settings.uniform(*self._settings.window_seconds)
        if (due := self._confirmation.due_seconds) is not None:
            window = min(window, max(1.0, math.ceil(due)))
        query = self._list_watch.watch_query(version, window)
        changed = False
        with self._open_stream(query, self._list_watch.accept.of_watch, self._settings.silence_seconds) as answer:
            self._opened_watch()
            try:
                for lines in lines_of(answer.pieces(window + _WINDOW_GRACE_SECONDS)):
                    with self._settings.pace.slice():
                        for line in lines:
                            self._take(line)
                            changed = True
                    self._note_heard()
            except SilentError:
                logger.debug("watch of %s was silent for too long, reopening it", self.resource.qualified)
        return changed

    def _take(self, line: bytes) -> None:
        """Apply one event of a watch."""
        try:
            event = self._event(line)
            if event.type == "ERROR":
                raise error_of_event(self._path, event.object)
            version = self._versions.decode(event.object).metadata.version
            if version in NO_VERSIONS:
                raise UnexpectedResponseError(f"watch of {self._path}: an event without a resourceVersion")
            self._take_object(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnexpectedResponseError(f"watch of {self._path}: not an event: {error}") from error
        self._version = version

    def _event(self, line: bytes) -> WatchEvent:
        """Return an event. One object that is nested too deeply must not end the watch of all others."""
        try:
            return self._events.decode(line)
        except RecursionError:
            return self._events.decode(shallow(line))

    def _take_object(self, event: WatchEvent) -> None:
        """Apply an event to the store. Raises the errors of decoding if the event does not name an object."""
        match event.type:
            case "ADDED" | "MODIFIED":
                self._put(event.object)
            case "DELETED":
                gone = named(event.object) or self._items.decode(event.object).metadata
                self._store.remove(gone.namespace, gone.name)
                self._left_out.discard(gone.namespace, gone.name)
            case "BOOKMARK":
                pass
            case unknown:
                raise UnexpectedResponseError(f"watch of {self._path}: an event of type {unknown[:32]!r}")

    def _put(self, content: msgspec.Raw) -> None:
        try:
            item = self._item(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            unreadable = named(content)
            if unreadable is None:
                raise
            # Its earlier state is no longer true.
            self._store.remove(unreadable.namespace, unreadable.name)
            self._left_out.put(unreadable.namespace, unreadable.name, str(error))
            return
        self._store.put(item)
        self._left_out.discard(item.metadata.namespace, item.metadata.name)

    def _item(self, content: msgspec.Raw) -> T:
        """Return an object. Raises the errors of decoding."""
        if is_cut(content):
            raise RecursionError(TOO_DEEP)
        return self._items.decode(content)

    def _open_stream(
        self, query: Mapping[str, str], accept: str, silence: float | None = None
    ) -> AbstractContextManager[Answer]:
        return self._reads.reading(self._client.open(self._path, query, accept, silence))

    def _note_heard(self) -> None:
        self._settings.telemetry.heard(self.resource.qualified, self._settings.wall_clock())

    def _now_synced(self) -> None:
        self._synced = True
        self.tried.set()
        self._settings.telemetry.synced(self.resource.qualified, synced=True)
        logger.info("%s: %d objects listed", self.resource.qualified, len(self._store))

    def _stood_seconds(self) -> float:
        """How many seconds the last watch has been open, or was; 0 if it could not be opened."""
        return 0.0 if self._stood_since is None else self._settings.clock() - self._stood_since

    def _opened_watch(self) -> None:
        self._stood_since = self._settings.clock()
        self._note_heard()
        self._refused = None
        if self._failure is not None:
            logger.info("watch of %s is open again", self.resource.qualified)
            self._failure = None


def _resumable(error: KubernetesError, failures: int) -> bool:
    """Return whether the watch may resume from its last version, after that many failures before this one.

    A server may fail repeatedly because of the version in the request; a new list does not name one.
    """
    if isinstance(error, ServerError):
        return failures == 0
    return isinstance(error, (UnreachableError, ThrottledError, UnauthorizedError))
