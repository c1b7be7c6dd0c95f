"""Lists a collection into a store: streamed if the server supports that, otherwise page by page.

A list without a resourceVersion shows the most recent state, and all its pages show the same moment. The store changes
only when a list is complete and of the right kind.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from adapter.foundation.sources.kubernetes.errors import ExpiredError, SilentError, StatusError, UnexpectedResponseError
from adapter.foundation.sources.kubernetes.lists.items import ItemsError, JsonList, ListHead, decode_json
from adapter.foundation.sources.kubernetes.lists.list_checks import Confirmation, Doubt, refuse_other_kind
from adapter.foundation.sources.kubernetes.lists.list_watch import NO_VERSIONS, ListWatch, WatchSettings
from adapter.foundation.sources.kubernetes.lists.streamed_list import (
    STREAM_SILENCE_SECONDS,
    InitialEvents,
    NotStreamedError,
    is_refused,
)
from adapter.foundation.sources.kubernetes.watches.streams import CollectionReader, lines_of
from adapter.foundation.sources.stores import KubernetesObject, Replacement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.sources.kubernetes.watches.stored_objects import StoredObjects

logger = logging.getLogger(__name__)

_LIST_SECONDS: Final = 60.0
_MOST_PAGES: Final = 4_000
"""The most pages of one list: two million objects, ten times the largest supported cluster."""
_LARGEST_PAGE_BYTES: Final = 256 << 20
"""Limit of a page. A server that does not support pages sends all objects at once."""

T = TypeVar("T", bound=KubernetesObject)


class CollectionList(Generic[T]):
    """Replaces the content of a store by lists."""

    def __init__(
        self,
        reader: CollectionReader,
        list_watch: ListWatch,
        objects: StoredObjects[T],
        settings: WatchSettings,
        doubt: Doubt[T] | None,
    ) -> None:
        """`doubt` decides which lists are believed only when a second one confirms them half a minute later."""
        self._reader = reader
        self._list_watch = list_watch
        self._resource = list_watch.resource
        self._path = list_watch.path
        self._objects = objects
        self._settings = settings
        self._confirmation = Confirmation(doubt, settings.clock)
        self._streams = list_watch.is_large
        self.began_empty = False
        """Whether the first list was empty, and no second list has confirmed or contradicted that yet."""

    @property
    def unconfirmed(self) -> int:
        """How many known objects are kept although the last list lacks them, until a second list confirms it."""
        return self._confirmation.kept

    @property
    def due_seconds(self) -> float | None:
        """Seconds until a second list is due to confirm the last one; None if none is needed."""
        return self._confirmation.due_seconds

    def read(self) -> str:
        """Replace the content of the store by a new list; return the resourceVersion of the list."""
        if self._streams:
            # Whatever goes wrong, the next list is requested in pages, which every server can send.
            self._streams = False
            try:
                version = self._read_stream()
            except NotStreamedError as error:
                logger.info("list of %s is not streamed, it is read in pages: %s", self._resource.qualified, error)
            else:
                self._streams = True
                return version
        try:
            return self._read_pages()
        except ExpiredError:
            # The server keeps pages for five minutes. The first pages are of no use without the others.
            logger.info("list of %s expired before its last page, starting again", self._resource.qualified)
            return self._read_pages()

    def newest_version(self) -> str:
        """Return the resourceVersion that a list would have now, from a list of one object. Raises KubernetesError."""
        try:
            head = decode_json(self._body(self._list_watch.list_query(1)), ListHead)
        except ItemsError as error:
            raise self._not_a_list(error) from error
        refuse_other_kind(self._path, self._resource, head, metadata_alone=self._list_watch.metadata_alone)
        return head.metadata.resource_version

    def _read_pages(self) -> str:
        replacement = self._objects.begin_list()
        query = self._list_watch.list_query(self._settings.page_size)
        asked: set[str] = set()
        readable = 0
        while True:
            page = JsonList(self._body(query), self._objects.form, unreadable=self._objects.left_out.from_list)
            for item in self._items_of(page):
                replacement.put(item)
                readable += 1
            refuse_other_kind(self._path, self._resource, page.head, metadata_alone=self._list_watch.metadata_alone)
            self._reader.note_heard()
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

    def _read_stream(self) -> str:
        """List by the initial events of a watch. Raises NotStreamedError if the server does not send any."""
        replacement = self._objects.begin_list()
        initial = InitialEvents(self._list_watch)
        readable = 0
        query = self._list_watch.stream_query(_LIST_SECONDS)
        try:
            with self._reader.open(query, self._list_watch.accept.of_watch, STREAM_SILENCE_SECONDS) as answer:
                for lines in lines_of(answer.pieces(_LIST_SECONDS)):
                    with self._settings.pace.slice():
                        for item in self._objects.readable(initial.objects(lines)):
                            replacement.put(item)
                            readable += 1
                    self._reader.note_heard()
                    if initial.version:
                        break
        except SilentError as error:
            raise NotStreamedError(str(error)) from error
        except StatusError as error:
            if is_refused(error):
                raise NotStreamedError(str(error)) from error
            raise
        if not initial.version:
            raise NotStreamedError("the watch ended before the bookmark that ends the current objects")
        self._replace(replacement, readable)
        return initial.version

    def _replace(self, replacement: Replacement[T], readable: int) -> None:
        """Replace the store's content by a complete list."""
        left_out = self._objects.left_out
        if not readable and left_out.count_left_out():
            raise UnexpectedResponseError(f"GET {self._path}: not a list of objects: none of its items can be read")
        if self._confirmation.believes(replacement, readable):
            replacement.commit()
        else:
            message = "%s: known objects that are not in the list are kept until a second list agrees: %d"
            logger.warning(message, self._resource.qualified, self._confirmation.kept)
        # This follows the commit, so that nobody sees the former content of the store without the doubt.
        self.began_empty = self._confirmation.began_empty
        left_out.commit_list()

    def _items_of(self, page: JsonList[T]) -> Iterator[T]:
        try:
            for items in page.batches(self._settings.pace):
                yield from items
        except ItemsError as error:
            raise self._not_a_list(error) from error

    def _not_a_list(self, error: ItemsError) -> UnexpectedResponseError:
        return UnexpectedResponseError(f"GET {self._path}: not a list of objects: {error}")

    def _refuse_endless(self, asked: set[str], token: str) -> None:
        """Record a continue token; raises UnexpectedResponseError for a repeated token or too many pages."""
        if token in asked:
            message = "the list does not end: a continue token is repeated"
            raise UnexpectedResponseError(f"GET {self._path}: {message}")
        asked.add(token)
        if len(asked) >= _MOST_PAGES:
            raise UnexpectedResponseError(
                f"GET {self._path}: the list does not end: it has more than {_MOST_PAGES} pages"
            )

    def _body(self, query: Mapping[str, str]) -> bytes:
        with self._reader.open(query, self._list_watch.accept.of_list) as answer:
            return answer.whole(_LIST_SECONDS, _LARGEST_PAGE_BYTES)
