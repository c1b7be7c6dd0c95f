"""MetricRule objects as the API server sends them, and the store that a watch fills with them."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from adapter.foundation.objects.metadata import ObjectMeta
from adapter.metrics.rulebook.objects.rule_object import ObjectContent

if TYPE_CHECKING:
    from collections.abc import Callable

_Key = tuple[str, str]
"""Namespace and name of an object."""


class RuleObjectMeta(ObjectMeta, gc=False, rename={"created": "creationTimestamp"}):
    """The metadata of an object, as far as it is read."""

    uid: str = ""
    generation: int = 0
    created: str = ""


class RuleObjectForm(msgspec.Struct):
    """A MetricRule object, without what other programs keep in it."""

    metadata: RuleObjectMeta
    spec: Any = None
    status: Any = None


@dataclass(frozen=True, slots=True)
class SeenStatus:
    """The status of an object as the API server has it."""

    uid: str
    content: dict[str, Any]
    """Empty for an object that has none yet."""
    since: float
    """Since when it is like this, in monotonic seconds of this process."""


class RuleObjectStore:
    """The objects of a watch. One thread writes, any thread reads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._contents: dict[_Key, ObjectContent] = {}
        self._statuses: dict[_Key, SeenStatus] = {}
        self._changed_statuses: set[str] = set()
        self.changed = threading.Event()
        """Set when a spec has changed, or an object has come or gone; the reader clears it."""

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._contents)

    def contents(self) -> dict[_Key, ObjectContent]:
        """Return all objects by namespace and name."""
        with self._lock:
            return dict(self._contents)

    def status(self, key: _Key) -> SeenStatus | None:
        """Return the status of an object; None if there is no such object."""
        with self._lock:
            return self._statuses.get(key)

    def take_changed_statuses(self) -> frozenset[str]:
        """Return the namespaces with an object whose status has changed since the last call."""
        with self._lock:
            changed = frozenset(self._changed_statuses)
            self._changed_statuses.clear()
            return changed

    def replacement(self) -> RuleObjectList:
        """Return an empty list that replaces the content of the store when it is committed."""
        return RuleObjectList(self)

    def put(self, item: RuleObjectForm) -> None:
        """Add an object, or update it."""
        with self._lock:
            self._put(item)

    def remove(self, namespace: str | None, name: str) -> None:
        """Delete an object; one that is not known is no error."""
        with self._lock:
            self._remove((namespace or "", name))

    def replace_all(self, items: dict[_Key, RuleObjectForm]) -> None:
        """Put a whole list in the place of all objects."""
        with self._lock:
            for key in self._contents.keys() - items.keys():
                self._remove(key)
            for item in items.values():
                self._put(item)
            self.changed.set()

    def _put(self, item: RuleObjectForm) -> None:
        metadata = item.metadata
        key = metadata.namespace or "", metadata.name
        content = ObjectContent(*key, metadata.uid, metadata.generation, metadata.created, item.spec)
        if self._contents.get(key) != content:
            self._contents[key] = content
            self.changed.set()
        status = item.status if isinstance(item.status, dict) else {}
        known = self._statuses.get(key)
        if known is None or (known.uid, known.content) != (metadata.uid, status):
            self._statuses[key] = SeenStatus(metadata.uid, status, self._clock())
            self._changed_statuses.add(key[0])

    def _remove(self, key: _Key) -> None:
        if self._contents.pop(key, None) is not None:
            self.changed.set()
        self._statuses.pop(key, None)


class RuleObjectList:
    """A new list, which takes the place of everything in its store."""

    def __init__(self, store: RuleObjectStore) -> None:
        self._store = store
        self._items: dict[_Key, RuleObjectForm] = {}

    def put(self, item: RuleObjectForm) -> None:
        """Add an object."""
        self._items[item.metadata.namespace or "", item.metadata.name] = item

    def commit(self) -> None:
        """Replace the content of the store."""
        self._store.replace_all(self._items)
