"""Reads the current objects of a collection as events of a watch, which costs the server less than pages of a list.

With `sendInitialEvents`, a watch begins with one ADDED event for each object that exists, followed by a bookmark that
is annotated as their end ("Streaming lists" in the Kubernetes API concepts, KEP-3157). The state is at least as recent
as the request. A server that cannot do this refuses the request; one that ignores its parameters never sends the
annotated bookmark. Both raise `NotStreamedError`, and then the objects have to be listed in pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.sources.kubernetes.errors import StatusError, UnexpectedResponseError, error_of_event
from adapter.foundation.sources.kubernetes.lists.list_watch import NO_VERSIONS, ListWatch, WatchEvent

STREAM_SILENCE_SECONDS = 10.0
"""Time without a byte after which a server is assumed not to stream; a server that streams reads from memory, fast."""
_REFUSALS = frozenset({400, 405, 406, 422})
"""HTTP statuses of servers that do not know the parameters, or do not allow them."""
_METADATA_KIND = "PartialObjectMetadata"
_END = "k8s.io/initial-events-end"


class NotStreamedError(Exception):
    """The server does not send the current objects as events; the message says how this was noticed."""


class _BookmarkMetadata(msgspec.Struct, gc=False, rename={"version": "resourceVersion"}):
    version: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct, gc=False):
    metadata: _BookmarkMetadata
    kind: str = ""


_EVENTS = decoder_of(WatchEvent)
_BOOKMARKS = decoder_of(_Bookmark)


class InitialEvents:
    """The events of one stream, up to the bookmark that marks the end of the current objects.

    Attributes:
        version: resourceVersion of the whole list, from which a watch continues; empty until the end was read.
    """

    def __init__(self, list_watch: ListWatch) -> None:
        self._path = list_watch.path
        self._kind = list_watch.resource.kind
        self._kinds = {self._kind, _METADATA_KIND} if list_watch.metadata_alone else {self._kind}
        self.version = ""

    def objects(self, lines: Iterable[bytes]) -> Iterator[msgspec.Raw]:
        """Yield the objects in these lines. Lines after the end are ignored, since the next watch repeats them.

        Raises KubernetesError for an error of the server and for what is not an event, and NotStreamedError.
        """
        for line in lines:
            try:
                event = _EVENTS.decode(line)
                if event.type == "BOOKMARK":
                    self._end(_BOOKMARKS.decode(event.object))
                    return
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise UnexpectedResponseError(f"watch of {self._path}: not an event: {error}") from error
            if event.type == "ERROR":
                raise error_of_event(self._path, event.object)
            if event.type != "ADDED":
                raise NotStreamedError(f"an event of type {event.type[:32]!r} before the end of the current objects")
            yield event.object

    def _end(self, bookmark: _Bookmark) -> None:
        if (bookmark.metadata.annotations or {}).get(_END) != "true":
            raise NotStreamedError("a bookmark that does not end the current objects")
        if bookmark.kind not in self._kinds:
            message = f"watch of {self._path}: objects of kind {bookmark.kind[:64]!r}, not {self._kind}"
            raise UnexpectedResponseError(message)
        if bookmark.metadata.version in NO_VERSIONS:
            raise UnexpectedResponseError(f"watch of {self._path}: a bookmark without a resourceVersion")
        self.version = bookmark.metadata.version


def is_refused(error: StatusError) -> bool:
    """Return whether the server refuses to stream, and may still serve lists."""
    return error.code in _REFUSALS
