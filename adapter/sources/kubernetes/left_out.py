"""Records objects that are left out because they cannot be read, in the log and in a metric.

One object with a label that is not text must not affect all other objects of its kind. But it must be reported, since a
query for "all pods with these labels" now returns one pod fewer.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.sources.kubernetes.telemetry import WatchTelemetry

_log = logging.getLogger(__name__)

_MOST_LOGGED = 5
"""Limit of objects of one kind with a log line each; the metric counts all of them."""


class _Named(msgspec.Struct):
    name: str = ""
    namespace: str | None = None


class _Object(msgspec.Struct):
    metadata: _Named


class UnreadObjects:
    """The objects of one kind that are left out now. One thread writes; any thread may call `count`."""

    def __init__(self, resource: str, telemetry: WatchTelemetry) -> None:
        """`resource` is `Resource.qualified`."""
        self._resource = resource
        self._telemetry = telemetry
        self._objects: dict[tuple[str | None, str], str] = {}
        """Reasons by namespace and name; an object without a readable name is called by its number in the list."""
        self._listed: dict[tuple[str | None, str], str] = {}
        self._counts: Mapping[str | None, int] = {}
        """Numbers of objects by namespace; replaced as a whole, since other threads read it."""

    def count(self, namespace: str | None) -> int:
        """Return how many objects of a namespace are left out; None: of all namespaces, and outside of them.

        An object whose namespace cannot be read counts in each namespace.
        """
        counts = self._counts
        return sum(counts.values()) if namespace is None else counts.get(namespace, 0) + counts.get(None, 0)

    def begin_list(self) -> None:
        """Start a new list, and forget the objects of an unfinished one."""
        self._listed = {}

    def from_list(self, content: msgspec.Raw, reason: str) -> None:
        """Record an item of the present list as left out."""
        found = named(content)
        key = (found.namespace, found.name) if found else (None, f"(one without a name, number {len(self._listed)})")
        self._listed[key] = reason

    def listed(self) -> int:
        """Return the number of items of the present list that are left out."""
        return len(self._listed)

    def commit_list(self) -> None:
        """Replace the recorded objects by those of the finished list."""
        before, self._objects = self._objects, self._listed
        self._listed = {}
        self._report({key: reason for key, reason in self._objects.items() if before.get(key) != reason})

    def put(self, namespace: str | None, name: str, reason: str) -> None:
        """Record an object of a watch event as left out."""
        known = self._objects.get((namespace, name))
        self._objects[namespace, name] = reason
        self._report({} if known == reason else {(namespace, name): reason})

    def discard(self, namespace: str | None, name: str) -> None:
        """Remove the record of an object that can be read now, or was deleted."""
        if self._objects and self._objects.pop((namespace, name), None) is not None:
            self._report({})

    def _report(self, new: dict[tuple[str | None, str], str]) -> None:
        self._counts = Counter(namespace for namespace, _ in self._objects)
        self._telemetry.left_out(self._resource, len(self._objects))
        for (namespace, name), reason in list(new.items())[:_MOST_LOGGED]:
            called = f"{namespace}/{name}" if namespace else name
            _log.warning("%s: %s is left out because it cannot be read: %s", self._resource, called, reason)
        if len(new) > _MOST_LOGGED:
            further = len(new) - _MOST_LOGGED
            _log.warning("%s: %d more objects are left out because they cannot be read", self._resource, further)


def named(content: msgspec.Raw) -> _Named | None:
    """Return name and namespace of an object that is invalid otherwise; None if they cannot be read."""
    try:
        found = msgspec.json.decode(content, type=_Object).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if found.name else None
