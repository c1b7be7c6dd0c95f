"""Describes which objects to list and watch, in which form the API server sends them, and a watch's events."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from adapter.foundation.sources.kubernetes.client import JSON, METADATA, METADATA_LIST
from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchTelemetry
from adapter.foundation.time.backoff import Backoff
from adapter.foundation.time.pace import UNPACED, Pace

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from adapter.foundation.objects.resources import Resource

NO_VERSIONS = frozenset({"", "0"})
"""Values that name no version: a watch from one of them starts at an arbitrary state and misses earlier deletions."""


def precedes(version: str, other: str) -> bool:
    """Return whether a resourceVersion is older than another one. False if they are not numbers, as etcd's are."""
    are_numbers = all(each.isascii() and each.isdigit() for each in (version, other))
    # They have no leading zeros, and may have thousands of digits, which Python refuses to convert.
    return are_numbers and (len(version), version) < (len(other), other)


@dataclass(frozen=True, slots=True)
class AcceptHeaders:
    """The `Accept` headers of a list and of a watch."""

    of_list: str
    of_watch: str


METADATA_ONLY = AcceptHeaders(METADATA_LIST, METADATA)
"""`PartialObjectMetadata`; a server that does not support it sends whole objects."""
WHOLE_OBJECTS = AcceptHeaders(JSON, JSON)


@dataclass(frozen=True, slots=True)
class ListWatch:
    """A collection of one kind, possibly restricted to a namespace and by selectors."""

    resource: Resource
    accept: AcceptHeaders = METADATA_ONLY
    namespace: str | None = None
    """None for all namespaces, and for kinds without a namespace."""
    label_selector: str = ""
    field_selector: str = ""

    @property
    def metadata_alone(self) -> bool:
        """Whether only the metadata of the objects is requested."""
        return self.accept == METADATA_ONLY

    @property
    def path(self) -> str:
        """Path of the collection."""
        resource = self.resource
        root = f"/apis/{resource.group}" if resource.group else "/api"
        within = f"namespaces/{self.namespace}/" if self.namespace else ""
        return f"{root}/{resource.version}/{within}{resource.plural}"

    def list_query(self, page_size: int) -> dict[str, str]:
        """Return the query of the first page; it names no resourceVersion, so the list shows the most recent state."""
        return self._selectors() | {"limit": str(page_size)}

    @property
    def is_large(self) -> bool:
        """Whether there may be so many objects that the server should be asked to stream them (`streamed_list`)."""
        return self.resource.qualified == "pods" and not self.field_selector

    def stream_query(self, seconds: float) -> dict[str, str]:
        """Return the query of a watch that begins with the objects that exist at the time of the request."""
        return self._selectors() | {
            "watch": "true",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(seconds)),
        }

    def watch_query(self, version: str, window_seconds: float) -> dict[str, str]:
        """Return the query of a watch that starts at the resourceVersion and that the server ends after the window."""
        return self._selectors() | {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(window_seconds)),
        }

    def _selectors(self) -> dict[str, str]:
        selectors = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {key: selector for key, selector in selectors.items() if selector}


class _Version(msgspec.Struct, gc=False, rename={"version": "resourceVersion"}):
    version: str


class Versioned(msgspec.Struct, gc=False):
    """The object of any event, including a bookmark."""

    metadata: _Version


class WatchEvent(msgspec.Struct):
    """One event of a watch, which is a line of its answer."""

    type: str
    object: msgspec.Raw


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """Times and limits of lists and watches, and the functions through which they wait and report."""

    page_size: int = 500
    window_seconds: tuple[float, float] = (300.0, 600.0)
    """Shortest and longest duration of a watch. Durations are random, so that watches spread over the API servers."""
    silence_seconds: float = 90.0
    """Time without a byte after which a watch is reopened. Bookmarks arrive each minute; if a connection has died, this
    is how long changes go unseen. A watch that is reopened too early costs one request."""
    healthy_seconds: float = 30.0
    """Time for which a watch must be open to reset the back-off."""
    away_seconds: tuple[float, float] = (5.0, 10.0)
    """The longest wait for a server that cannot be reached, at random between these. Other errors cost the server work,
    and may be waited for longer; an attempt that does not reach it costs nothing."""
    refused_seconds: float = 10.0
    """How long cached objects are still served while a server, which may just be starting, refuses the kind."""
    refused_wait_seconds: float = 0.0
    """Shortest time before a kind that the server refuses is requested again."""
    retries_first_list: bool = False
    """Whether those who wait for the first list wait for its success, unless the server refuses the kind; otherwise,
    they wait for its first failure at most."""
    resumes: bool = True
    """Whether a new watch continues from the last version; otherwise, each watch begins with a list."""
    pace: Pace = UNPACED
    telemetry: WatchTelemetry = field(default_factory=WatchTelemetry)
    backoff: Callable[[], Backoff] = Backoff
    uniform: Callable[[float, float], float] = random.uniform
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    wait: Callable[[Event, float], bool] = threading.Event.wait
    """Waits for the event, for at most this many seconds."""
