"""Watches one object by its name, whole: a list and a watch with a field selector, as a role for one name allows.

The object is small and changes seldom, so nothing is resumed: whenever a watch ends, for whatever reason, the object is
listed anew. What was told last stays true for whoever was told while the server is away.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from adapter.sources.kubernetes.client import JSON
from adapter.sources.kubernetes.errors import (
    ErrorStatus,
    ExpiredError,
    KubernetesError,
    SilentError,
    StatusError,
    UnexpectedResponseError,
    error_of_status,
)
from adapter.sources.kubernetes.streams import Interruptible, in_rounds, lines_of, when_set

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from threading import Event

    from adapter.sources.kubernetes.client import Answer, KubernetesClient
    from adapter.sources.kubernetes.settings import WatchSettings
    from adapter.timing.backoff import Backoff

_log = logging.getLogger(__name__)

_LIST_SECONDS = 15.0
_WINDOW_GRACE_SECONDS = 30.0
_LARGEST_BYTES = 16 << 20
"""A ConfigMap has at most one MiB."""


class _Metadata(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    name: str = ""


class _Object(msgspec.Struct):
    metadata: _Metadata


class _List(msgspec.Struct):
    metadata: _Metadata
    items: list[msgspec.Raw] | None
    """Not left out by any API server: an answer without it does not say that there is no object."""


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


@dataclass(frozen=True, slots=True)
class NamedObject:
    """Which object is meant."""

    collection: str
    """Path of the collection: `/api/v1/namespaces/kube-system/configmaps`."""
    name: str
    label: str
    """How metrics and logs call it."""


class NamedWatch:
    """Tells one object's content, and each change of it, for as long as `run` runs.

    `told` is given the object in JSON, or None where there is none. `failed` is given why it cannot be read, at each
    try. Both are called by the thread of `run`; what they raise ends it.
    """

    def __init__(
        self,
        client: KubernetesClient,
        which: NamedObject,
        told: Callable[[bytes | None], None],
        failed: Callable[[KubernetesError], None],
        settings: WatchSettings,
    ) -> None:
        self._client = client
        self._which = which
        self._told = told
        self._failed = failed
        self._settings = settings
        self._reads = Interruptible()
        settings.telemetry.synced(which.label, synced=False)

    def run(self, stop: Event) -> None:
        """List and watch until `stop` is set; a read that waits then is ended."""
        with when_set(stop, self._reads.end):
            in_rounds(stop, self._settings, self._round, self._take_failure)

    def _round(self, backoff: Backoff) -> float:
        version = self._list()
        self._settings.telemetry.synced(self._which.label, synced=True)
        began = self._settings.clock()
        self._watch(version)
        if self._settings.clock() - began >= 1.0:
            backoff.reset()
            return 0.0
        # A watch that ends at once is a server in trouble, even if it says nothing of it.
        return backoff.delay()

    def _take_failure(self, error: KubernetesError, backoff: Backoff) -> float:
        if isinstance(error, ExpiredError):
            return backoff.delay()
        self._settings.telemetry.failed(self._which.label, type(error).__name__)
        self._failed(error)
        return backoff.delay(error.retry_after_seconds if isinstance(error, StatusError) else 0.0)

    def _list(self) -> str:
        """Tell the present content; return the resourceVersion that it is of."""
        with self._opened({}, None) as answer:
            body = answer.whole(_LIST_SECONDS, _LARGEST_BYTES)
        try:
            found = msgspec.json.decode(body, type=_List)
            mine = [one for one in found.items or () if _metadata(one).name == self._which.name]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnexpectedResponseError(f"GET {self._which.collection}: not a list of objects: {error}") from error
        if not found.metadata.resource_version:
            raise UnexpectedResponseError(f"GET {self._which.collection}: a list without a resourceVersion")
        self._tell(bytes(mine[0]) if mine else None)
        return found.metadata.resource_version

    def _watch(self, version: str) -> None:
        """Tell changes until the server ends the watch."""
        window = self._settings.uniform(*self._settings.window_seconds)
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(window)),
        }
        with self._opened(query, self._settings.silence_seconds) as answer:
            try:
                for lines in lines_of(answer.pieces(window + _WINDOW_GRACE_SECONDS)):
                    for line in lines:
                        self._take(line)
            except SilentError:
                _log.debug("watch of %s was silent for long, opened anew", self._which.label)

    def _take(self, line: bytes) -> None:
        """Take in one event of a watch."""
        try:
            event = msgspec.json.decode(line, type=_Event)
            if event.type == "ERROR":
                raise error_of_status(
                    f"watch of {self._which.label}", msgspec.json.decode(event.object, type=ErrorStatus)
                )
            metadata = _metadata(event.object)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnexpectedResponseError(f"watch of {self._which.label}: not an event: {error}") from error
        if metadata.name == self._which.name and event.type in {"ADDED", "MODIFIED", "DELETED"}:
            self._tell(None if event.type == "DELETED" else bytes(event.object))

    def _tell(self, content: bytes | None) -> None:
        self._settings.telemetry.heard(self._which.label, self._settings.wall_clock())
        self._told(content)

    def _opened(self, query: Mapping[str, str], silence: float | None) -> AbstractContextManager[Answer]:
        asked = {"fieldSelector": f"metadata.name={self._which.name}", **query}
        return self._reads.reading(self._client.open(self._which.collection, asked, JSON, silence))


def _metadata(one: msgspec.Raw) -> _Metadata:
    return msgspec.json.decode(one, type=_Object).metadata
