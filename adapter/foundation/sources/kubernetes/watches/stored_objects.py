"""Puts the objects of lists and watch events into a store; an unreadable object is left out and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.sources.kubernetes.errors import UnexpectedResponseError, error_of_event
from adapter.foundation.sources.kubernetes.lists.list_checks import UnreadObjects, identity_of_invalid
from adapter.foundation.sources.kubernetes.lists.list_watch import NO_VERSIONS, Versioned, WatchEvent
from adapter.foundation.sources.kubernetes.lists.nesting import TOO_DEEP, is_cut, shallow
from adapter.foundation.sources.stores import KubernetesObject, Replacement, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.sources.kubernetes.lists.list_watch import ListWatch, WatchSettings

T = TypeVar("T", bound=KubernetesObject)


class StoredObjects(Generic[T]):
    """The objects of a store, as lists and watches report them."""

    def __init__(self, list_watch: ListWatch, form: type[T], store: Store[T], settings: WatchSettings) -> None:
        """Each object is decoded as `form`, a msgspec Struct."""
        self.form = form
        self.left_out = UnreadObjects(list_watch.resource.qualified, settings.telemetry)
        self._path = list_watch.path
        self._store = store
        self._events = decoder_of(WatchEvent)
        self._items = decoder_of(form)
        self._versions = decoder_of(Versioned)

    def __len__(self) -> int:
        """Return how many objects the store holds."""
        return len(self._store)

    def begin_list(self) -> Replacement[T]:
        """Return the replacement that a new list is written to; forget what an unfinished list left out."""
        self.left_out.begin_list()
        return self._store.replacement()

    def readable(self, contents: Iterator[msgspec.Raw]) -> Iterator[T]:
        """Return the objects of a list that can be read; the others are left out."""
        for content in contents:
            try:
                yield self._item(content)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                self.left_out.from_list(content, str(error))

    def apply(self, line: bytes) -> str:
        """Apply one event of a watch, and return its resourceVersion. Raises KubernetesError."""
        try:
            event = self._event(line)
            if event.type == "ERROR":
                raise error_of_event(self._path, event.object)
            version = self._versions.decode(event.object).metadata.version
            if version in NO_VERSIONS:
                raise UnexpectedResponseError(f"watch of {self._path}: an event without a resourceVersion")
            self._apply_object(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnexpectedResponseError(f"watch of {self._path}: not an event: {error}") from error
        return version

    def _event(self, line: bytes) -> WatchEvent:
        """Decode an event. An object that is nested too deeply must not end the watch of all others."""
        try:
            return self._events.decode(line)
        except RecursionError:
            return self._events.decode(shallow(line))

    def _apply_object(self, event: WatchEvent) -> None:
        """Apply an event to the store. Raises the errors of decoding if the event does not name an object."""
        match event.type:
            case "ADDED" | "MODIFIED":
                self._put(event.object)
            case "DELETED":
                gone = identity_of_invalid(event.object) or self._items.decode(event.object).metadata
                self._store.remove(gone.namespace, gone.name)
                self.left_out.discard(gone.namespace, gone.name)
            case "BOOKMARK":
                pass
            case unknown:
                raise UnexpectedResponseError(f"watch of {self._path}: an event of type {unknown[:32]!r}")

    def _put(self, content: msgspec.Raw) -> None:
        try:
            item = self._item(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            unreadable = identity_of_invalid(content)
            if unreadable is None:
                raise
            # This precedes the removal of the earlier state, which is no longer true: nobody must think it was deleted.
            self.left_out.put(unreadable.namespace, unreadable.name, str(error))
            self._store.remove(unreadable.namespace, unreadable.name)
            return
        self._store.put(item)
        self.left_out.discard(item.metadata.namespace, item.metadata.name)

    def _item(self, content: msgspec.Raw) -> T:
        """Decode an object. Raises the errors of decoding."""
        if is_cut(content):
            raise RecursionError(TOO_DEEP)
        return self._items.decode(content)
