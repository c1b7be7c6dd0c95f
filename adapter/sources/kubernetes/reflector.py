"""Keeps an index of one kind of object equal to what the cluster has: a paged list, then a watch from where it ended.

Only metadata is asked for (`PartialObjectMetadata`); a server that answers with whole objects is understood too.

The protocol is that of "Efficient detection of changes" in the Kubernetes API concepts. A list without a
resourceVersion is the most recent state, and all its pages are of one moment. A watch from its resourceVersion tells
every later change; bookmarks move that version on where nothing changes. A version that is compacted (410) means a new
list. A list is never older than what is known, so no object comes back from the dead.

While the server is away what is known stays known: `synced` remains true, and a metric tells when it was last heard.
So it does for a moment where the server refuses the kind: kube-apiserver answers 403 to everybody, and 404 for kinds
of CustomResourceDefinitions, from its first connection until it has read its roles and definitions.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import msgspec

from adapter.sources.kubernetes.client import METADATA, METADATA_LIST
from adapter.sources.kubernetes.errors import (
    ErrorStatus,
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
    error_of_status,
)
from adapter.sources.kubernetes.items import ItemsError, JsonList
from adapter.sources.kubernetes.left_out import LeftOut, named
from adapter.sources.kubernetes.metadata import NO_VERSIONS, Item, Versioned, WatchEvent
from adapter.sources.kubernetes.streams import Interruptible, in_rounds, lines_of, when_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from adapter.objects.resources import Resource
    from adapter.sources.index import ObjectIndex
    from adapter.sources.kubernetes.client import Answer, KubernetesClient
    from adapter.sources.kubernetes.metadata import Metadata
    from adapter.sources.kubernetes.settings import WatchSettings
    from adapter.timing.backoff import Backoff

logger = logging.getLogger(__name__)

_LIST_SECONDS = 60.0
_WINDOW_GRACE_SECONDS = 30.0
_TOO_SHORT_SECONDS = 1.0


_MOST_PAGES = 4_000
"""Two million objects, ten times what Kubernetes is made for."""
_LARGEST_PAGE_BYTES = 256 << 20
"""A server that knows no pages answers with everything at once."""


class Reflector:
    """Lists and watches one kind, for as long as `run` runs."""

    def __init__(
        self,
        client: KubernetesClient,
        resource: Resource,
        index: ObjectIndex,
        settings: WatchSettings,
    ) -> None:
        """`index` is written by this reflector alone."""
        self.index = index
        self.resource = resource
        self._client = client
        self._settings = settings
        self._path = collection_path(resource)
        self._events = msgspec.json.Decoder(WatchEvent)
        self._items = msgspec.json.Decoder(Item)
        self._versions = msgspec.json.Decoder(Versioned)
        self._left_out = LeftOut(resource.qualified, settings.telemetry)
        self._version: str | None = None
        self._synced = False
        self._stood_since: float | None = None
        self._failure: KubernetesError | None = None
        self._refused_since: float | None = None
        self._reads = Interruptible()
        self.tried = threading.Event()
        """Set once the first list has been taken in, or has failed."""
        settings.telemetry.synced(resource.qualified, synced=False)

    @property
    def synced(self) -> bool:
        """Whether a whole list has been taken in. Stays true while a newer one is under way."""
        return self._synced

    @property
    def failure(self) -> KubernetesError | None:
        """Why the last list or watch failed; None when it did not."""
        return self._failure

    @property
    def refusal(self) -> ForbiddenError | NotFoundError | None:
        """Why the server gives this kind to nobody here; None where it does, or where that may pass in a moment."""
        failure, since = self._failure, self._refused_since
        if since is None or not isinstance(failure, (ForbiddenError, NotFoundError)):
            return None
        lasts = self._settings.clock() - since >= self._settings.refused_seconds
        return failure if lasts or not self._synced else None

    def run(self, stop: threading.Event) -> None:
        """List and watch until `stop` is set; a read that waits then is ended."""
        with when_set(stop, self._reads.end):
            in_rounds(stop, self._settings, self._round, self._failed)

    def _round(self, backoff: Backoff) -> float:
        """List if that is due, then watch for one window. Return how long to wait before the next."""
        self._stood_since = None
        if self._version is None:
            self._version = self._list()
        told = self._watch(self._version)
        stood = self._stood_seconds()
        if stood >= self._settings.healthy_seconds:
            backoff.reset()
        # A watch that ends at once and tells nothing is a server in trouble, even if it says nothing of it.
        return backoff.delay() if stood < _TOO_SHORT_SECONDS and not told else 0.0

    def _failed(self, error: KubernetesError, backoff: Backoff) -> float:
        """Take note of the failure, decide whether to list anew, and return how long to wait."""
        if self._stood_seconds() >= self._settings.healthy_seconds:
            backoff.reset()
        if not _resumable(error, backoff.failures):
            self._version = None
        self._settings.telemetry.failed(self.resource.qualified, type(error).__name__)
        level = (
            logging.DEBUG if type(error) is type(self._failure) or isinstance(error, ExpiredError) else logging.WARNING
        )
        if self._refused_since is None and isinstance(error, (ForbiddenError, NotFoundError)):
            self._refused_since = self._settings.clock()
        self._failure = error
        self.tried.set()
        logger.log(level, "watch of %s failed, will try again: %s", self.resource.qualified, error)
        return backoff.delay(error.retry_after_seconds if isinstance(error, StatusError) else 0.0)

    def _list(self) -> str:
        """Replace the index by a new list; return the resourceVersion that it is of."""
        try:
            return self._list_pages()
        except ExpiredError:
            # Pages are kept for five minutes. What was read so far is of no use without the rest.
            logger.info("list of %s took longer than its pages are kept, begun anew", self.resource.qualified)
            return self._list_pages()

    def _list_pages(self) -> str:
        replacement = self.index.replacement()
        self._left_out.begin_list()
        query = {"limit": str(self._settings.page_size)}
        asked: set[str] = set()
        readable = 0
        while True:
            page = self._page(query)
            for item in self._items_of(page):
                replacement.put(item.namespace, item.name, item.labels or {})
                readable += 1
            self._heard()
            metadata = page.head.metadata
            if not metadata.next_page:
                break
            self._refuse_endless(asked, metadata.next_page)
            # A continue token holds the version that the list began with, and must come without one.
            query["continue"] = metadata.next_page
        if metadata.resource_version in NO_VERSIONS:
            raise UnexpectedResponseError(f"GET {self._path}: a list without a resourceVersion")
        if not readable and self._left_out.listed():
            raise UnexpectedResponseError(f"GET {self._path}: not a list of objects: none of its items can be read")
        replacement.commit()
        self._left_out.commit_list()
        self._now_synced()
        return metadata.resource_version

    def _items_of(self, page: JsonList[Item]) -> Iterator[Metadata]:
        try:
            for items in page.parts(self._settings.pace):
                for item in items:
                    yield item.metadata
        except ItemsError as error:
            raise UnexpectedResponseError(f"GET {self._path}: not a list of objects: {error}") from error

    def _refuse_endless(self, asked: set[str], token: str) -> None:
        """Take note of a continue token; raises UnexpectedAnswerError where pages would come without end."""
        if token in asked:
            message = "the list does not end: its next page is one that it has given already"
            raise UnexpectedResponseError(f"GET {self._path}: {message}")
        asked.add(token)
        if len(asked) >= _MOST_PAGES:
            raise UnexpectedResponseError(
                f"GET {self._path}: the list does not end: it has more than {_MOST_PAGES} pages"
            )

    def _page(self, query: Mapping[str, str]) -> JsonList[Item]:
        with self._opened(query, METADATA_LIST) as answer:
            body = answer.whole(_LIST_SECONDS, _LARGEST_PAGE_BYTES)
        return JsonList(body, Item, unreadable=self._left_out.from_list)

    def _watch(self, version: str) -> bool:
        """Take in changes until the server ends the watch; return whether it told any."""
        window = self._settings.uniform(*self._settings.window_seconds)
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(window)),
        }
        told = False
        with self._opened(query, METADATA, self._settings.silence_seconds) as answer:
            self._opened_watch()
            try:
                for lines in lines_of(answer.pieces(window + _WINDOW_GRACE_SECONDS)):
                    with self._settings.pace.slice():
                        for line in lines:
                            self._take(line)
                            told = True
                    self._heard()
            except SilentError:
                logger.debug("watch of %s was silent for long, opened anew", self.resource.qualified)
        return told

    def _take(self, line: bytes) -> None:
        """Take in one event of a watch."""
        try:
            event = self._events.decode(line)
            if event.type == "ERROR":
                raise error_of_status(f"watch of {self._path}", msgspec.json.decode(event.object, type=ErrorStatus))
            version = self._versions.decode(event.object).metadata.version
            if version in NO_VERSIONS:
                raise UnexpectedResponseError(f"watch of {self._path}: an event without a resourceVersion")
            self._take_object(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnexpectedResponseError(f"watch of {self._path}: not an event: {error}") from error
        self._version = version

    def _take_object(self, event: WatchEvent) -> None:
        """Take in what an event says of its object. Raises what decoding raises where it does not name one."""
        match event.type:
            case "ADDED" | "MODIFIED":
                self._put(event.object)
            case "DELETED":
                gone = named(event.object) or self._items.decode(event.object).metadata
                self.index.remove(gone.namespace, gone.name)
                self._left_out.discard(gone.namespace, gone.name)
            case "BOOKMARK":
                pass
            case unknown:
                raise UnexpectedResponseError(f"watch of {self._path}: an event of type {unknown[:32]!r}")

    def _put(self, content: msgspec.Raw) -> None:
        try:
            item = self._items.decode(content).metadata
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            unreadable = named(content)
            if unreadable is None:
                raise
            # What it was before is true no more.
            self.index.remove(unreadable.namespace, unreadable.name)
            self._left_out.put(unreadable.namespace, unreadable.name, str(error))
            return
        self.index.put(item.namespace, item.name, item.labels or {})
        self._left_out.discard(item.namespace, item.name)

    def _opened(
        self, query: Mapping[str, str], accept: str, silence: float | None = None
    ) -> AbstractContextManager[Answer]:
        return self._reads.reading(self._client.open(self._path, query, accept, silence))

    def _heard(self) -> None:
        self._settings.telemetry.heard(self.resource.qualified, self._settings.wall_clock())

    def _now_synced(self) -> None:
        self._synced = True
        self.tried.set()
        self._settings.telemetry.synced(self.resource.qualified, synced=True)
        logger.info("%s: %d objects listed", self.resource.qualified, len(self.index))

    def _stood_seconds(self) -> float:
        """How long the present watch stands, or stood; 0 when it was not opened."""
        return 0.0 if self._stood_since is None else self._settings.clock() - self._stood_since

    def _opened_watch(self) -> None:
        self._stood_since = self._settings.clock()
        self._heard()
        self._refused_since = None
        if self._failure is not None:
            logger.info("watch of %s stands again", self.resource.qualified)
            self._failure = None


def collection_path(resource: Resource) -> str:
    """Return the path of all objects of the kind, in all namespaces."""
    root = f"/apis/{resource.group}" if resource.group else "/api"
    return f"{root}/{resource.version}/{resource.plural}"


def _resumable(error: KubernetesError, failures: int) -> bool:
    """Tell whether the watch may go on from where it was, after so many failures before this one.

    A server that fails again may do so because of the version that it is asked for; a new list has none.
    """
    if isinstance(error, ServerError):
        return failures == 0
    return isinstance(error, (UnreachableError, ThrottledError, UnauthorizedError))
