"""Objects that cannot be read, and so are left out: which they are, told in the log and in a metric.

One object with a label that is no text must not take all others of its kind away. Nor may it vanish without a word:
whoever asks for "all pods with these labels" gets one fewer.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from adapter.sources.kubernetes.telemetry import WatchTelemetry

_log = logging.getLogger(__name__)

_TOLD_ONE_BY_ONE = 5
"""Objects of one kind that a log line of their own tells of; the metric counts the others."""


class _Named(msgspec.Struct):
    name: str = ""
    namespace: str | None = None


class _Object(msgspec.Struct):
    metadata: _Named


class LeftOut:
    """The objects of one kind that are left out now. One thread writes."""

    def __init__(self, resource: str, telemetry: WatchTelemetry) -> None:
        """`resource` is `Resource.qualified`."""
        self._resource = resource
        self._telemetry = telemetry
        self._objects: dict[tuple[str | None, str], str] = {}
        """Namespace and name with the reason; what cannot even be named has its place in the list for a name."""
        self._listed: dict[tuple[str | None, str], str] = {}

    def begin_list(self) -> None:
        """Forget what an unfinished list left out."""
        self._listed = {}

    def from_list(self, content: msgspec.Raw, reason: str) -> None:
        """Leave out an item of the list that is read now."""
        found = named(content)
        key = (found.namespace, found.name) if found else (None, f"(one without a name, number {len(self._listed)})")
        self._listed[key] = reason

    def listed(self) -> int:
        """Return how many items of the list that is read now are left out."""
        return len(self._listed)

    def commit_list(self) -> None:
        """Let what the list left out be all that is left out."""
        before, self._objects = self._objects, self._listed
        self._listed = {}
        self._tell({key: reason for key, reason in self._objects.items() if before.get(key) != reason})

    def put(self, namespace: str | None, name: str, reason: str) -> None:
        """Leave out an object that a watch tells of."""
        known = self._objects.get((namespace, name))
        self._objects[namespace, name] = reason
        self._tell({} if known == reason else {(namespace, name): reason})

    def discard(self, namespace: str | None, name: str) -> None:
        """Take note that an object can be read, or is gone."""
        if self._objects and self._objects.pop((namespace, name), None) is not None:
            self._tell({})

    def _tell(self, new: dict[tuple[str | None, str], str]) -> None:
        self._telemetry.left_out(self._resource, len(self._objects))
        for (namespace, name), reason in list(new.items())[:_TOLD_ONE_BY_ONE]:
            called = f"{namespace}/{name}" if namespace else name
            _log.warning("%s: %s is left out, it cannot be read: %s", self._resource, called, reason)
        if len(new) > _TOLD_ONE_BY_ONE:
            further = len(new) - _TOLD_ONE_BY_ONE
            _log.warning("%s: %d more objects are left out, they cannot be read", self._resource, further)


def named(content: msgspec.Raw) -> _Named | None:
    """Return name and namespace of an object, whatever else is wrong with it; None where it does not tell."""
    try:
        found = msgspec.json.decode(content, type=_Object).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if found.name else None
