"""Checks answers to lists, as a whole and object by object.

A list must be of the requested kind, and not suddenly empty. An unreadable object is left out; the others are kept.

A proxy, a cache or a failing API server may answer 200 with an empty list, or with a list of another kind. Of all wrong
statements about a cluster, an empty list does the most harm.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.objects.resources import BUILT_IN, Resource
from adapter.foundation.sources.kubernetes.errors import UnexpectedResponseError
from adapter.foundation.sources.kubernetes.lists.nesting import shallow
from adapter.foundation.sources.stores import KubernetesObject, Replacement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchTelemetry
    from adapter.foundation.sources.kubernetes.lists.items import ListHead

T_co = TypeVar("T_co", bound=KubernetesObject, covariant=True)
T = TypeVar("T", bound=KubernetesObject)

CONFIRM_SECONDS: Final = 30.0
"""Time after which a second list may confirm one that was not believed."""
_METADATA_LIST: Final = "PartialObjectMetadataList"
_METADATA_GROUP: Final = "meta.k8s.io/"
_SHOWN_CHARACTERS: Final = 64
_BUILT_IN: Final = frozenset(BUILT_IN)


class Doubt(Protocol[T_co]):
    """Decides whether a new list is believed at once, although it may lack known objects."""

    def __call__(self, replacement: Replacement[T_co], listed: int, *, is_second: bool) -> int:
        """Return how many known objects are kept although the list lacks them; 0 if the list is believed.

        `listed` is the number of its items, and `is_second` whether it comes late enough to confirm an earlier one. The
        caller does not commit a list that is not believed.
        """


def refuse_other_kind(path: str, resource: Resource, head: ListHead, *, metadata_alone: bool) -> None:
    """Raise UnexpectedResponseError if a list is not of the requested kind in the requested version.

    `metadata_alone` is whether only the metadata of the objects was requested; a server may answer with whole objects.
    """
    if metadata_alone and head.kind == _METADATA_LIST and head.api_version.startswith(_METADATA_GROUP):
        return
    # The definition of a custom resource may give its lists any name.
    is_named = head.kind == f"{resource.kind}List" if resource in _BUILT_IN else bool(head.kind)
    if not is_named or head.api_version != resource.api_version:
        found = f"{head.kind or 'no kind'} of {head.api_version or 'no version'}"
        raise UnexpectedResponseError(
            f"GET {path}: a list of {found[:_SHOWN_CHARACTERS]}, not a {resource.kind}List of {resource.api_version}"
        )


@dataclass(slots=True)
class Confirmation(Generic[T]):
    """Decides whether lists are believed. For the thread that lists."""

    doubt: Doubt[T] | None
    """None if every list is trusted."""
    clock: Callable[[], float]
    """Monotonic, in seconds."""
    kept: int = 0
    """How many known objects are kept although the last list lacks them."""
    began_empty: bool = False
    """Whether the first list was empty, and no second list has confirmed that or shown objects. The first list is
    accepted, since nothing is known before it, but code that remembers objects from an earlier process must not rely on
    it."""
    _has_listed: bool = False
    _since: float | None = None

    def believes(self, replacement: Replacement[T], listed: int) -> bool:
        """Return whether to commit a list, that is, whether `doubt` keeps none of the objects that the list lacks."""
        if self.doubt is None:
            return True
        is_due = self._since is not None and self.clock() - self._since >= CONFIRM_SECONDS
        # Objects that a watch has added to an empty first list contradict it: they were never doubted before.
        is_second = is_due and (self.kept > 0 or not self.began_empty)
        kept_before, self.kept = self.kept, self.doubt(replacement, listed, is_second=is_second)
        self.began_empty = not listed and (not self._has_listed or (self.began_empty and (self.kept > 0 or not is_due)))
        self._has_listed = True
        if not self.kept and not self.began_empty:
            self._since = None
        elif self._since is None or is_due or (self.kept and not kept_before):
            self._since = self.clock()
        return not self.kept

    @property
    def due_seconds(self) -> float | None:
        """Seconds until a second list is due; None if no list is in doubt."""
        return None if self._since is None else max(0.0, CONFIRM_SECONDS - (self.clock() - self._since))


_log = logging.getLogger(__name__)

_MOST_LOGGED = 5
"""Limit of objects of one kind that get a log line each; the metric counts all of them."""


class _Named(msgspec.Struct):
    name: str = ""
    namespace: str | None = None


class _Object(msgspec.Struct):
    metadata: _Named


_OBJECT = decoder_of(_Object)


class UnreadObjects:
    """Reports, in the log and in a metric, the objects of one kind that are left out because they cannot be read.

    One object with a label that is not text must not affect all others of its kind. But it must be reported, since a
    query for "all pods with these labels" now returns one pod fewer. One thread writes; any thread may call `count`.
    """

    def __init__(self, resource: str, telemetry: WatchTelemetry) -> None:
        """`resource` is `Resource.qualified`."""
        self._resource = resource
        self._telemetry = telemetry
        self._objects: dict[tuple[str | None, str], str] = {}
        """Reasons by namespace and name; an object without a readable name goes by its number in the list."""
        self._listed: dict[tuple[str | None, str], str] = {}
        self.counts: Mapping[str | None, int] = {}
        """Numbers of objects by namespace; replaced as a whole, since other threads read it."""

    def count(self, namespace: str | None) -> int:
        """Return how many objects of a namespace are left out; None means all namespaces and cluster-scoped objects.

        An object whose namespace cannot be read counts in each namespace.
        """
        counts = self.counts
        return sum(counts.values()) if namespace is None else counts.get(namespace, 0) + counts.get(None, 0)

    def begin_list(self) -> None:
        """Start a new list, and forget the objects of an unfinished one."""
        self._listed = {}

    def from_list(self, content: msgspec.Raw, reason: str) -> None:
        """Record an item of the current list as left out."""
        found = identity_of_invalid(content)
        key = (found.namespace, found.name) if found else (None, f"(one without a name, number {len(self._listed)})")
        self._listed[key] = reason

    def count_left_out(self) -> int:
        """Return the number of items of the current list that are left out."""
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
        self.counts = Counter(namespace for namespace, _ in self._objects)
        self._telemetry.set_unreadable(self._resource, len(self._objects))
        for (namespace, name), reason in list(new.items())[:_MOST_LOGGED]:
            called = f"{namespace}/{name}" if namespace else name
            _log.warning("%s: %s is left out because it cannot be read: %s", self._resource, called, reason)
        if len(new) > _MOST_LOGGED:
            further = len(new) - _MOST_LOGGED
            _log.warning("%s: further objects that cannot be read are left out: %d", self._resource, further)


def identity_of_invalid(content: msgspec.Raw) -> _Named | None:
    """Return name and namespace of an object that is invalid otherwise; None if they cannot be read."""
    try:
        found = _metadata_of(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if found.name else None


def _metadata_of(content: msgspec.Raw) -> _Named:
    try:
        return _OBJECT.decode(content).metadata
    except RecursionError:
        return _OBJECT.decode(shallow(bytes(content))).metadata
