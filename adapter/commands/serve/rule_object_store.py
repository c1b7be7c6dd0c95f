"""MetricRule objects as the API server sends them, and the store that a watch fills with them."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from adapter.foundation.cluster.stores.oldest import ObjectIdentity, OldestObjects
from adapter.foundation.objects.metadata import ObjectMeta
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.objects.rule_object import ObjectContent
from adapter.metrics.rulebook.objects.status import says_too_many

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.cluster.stores.oldest import Key


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


@dataclass(frozen=True, slots=True)
class _Seen:
    """An object within the limit of its namespace."""

    content: ObjectContent
    status: SeenStatus


class RuleObjectStore:
    """The objects of a watch: the oldest ones of each namespace whole. One thread watches, any thread reads.

    Of those beyond the limit of a namespace, only what identifies them is kept.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        most: int = ReadingSettings().max_rule_objects_per_namespace,
    ) -> None:
        """Keep so many objects of each namespace whole."""
        self._clock = clock
        self._lock = threading.Lock()
        self._objects: OldestObjects[_Seen] = OldestObjects(most)
        self._changed_statuses: set[str] = set()
        self.changed = threading.Event()
        """Set when a spec has changed, or an object has come or gone; the reader clears it."""

    def __len__(self) -> int:
        """Return the number of all objects."""
        return len(self._objects)

    @property
    def most(self) -> int:
        """The limit of each namespace."""
        return self._objects.most

    @property
    def number_beyond(self) -> int:
        """The number of objects beyond the limits of their namespaces."""
        with self._lock:
            return self._objects.number_beyond

    def contents(self) -> dict[Key, ObjectContent]:
        """Return all objects within the limits, by namespace and name."""
        with self._lock:
            return {key: seen.content for key, seen in self._objects.values.items()}

    def status(self, key: Key) -> SeenStatus | None:
        """Return the status of an object; None if there is no such object within the limit."""
        with self._lock:
            seen = self._objects.values.get(key)
            return None if seen is None else seen.status

    def take_changed_statuses(self) -> frozenset[str]:
        """Return the namespaces with an object whose status has changed since the last call."""
        with self._lock:
            changed = frozenset(self._changed_statuses)
            self._changed_statuses.clear()
            return changed

    def untold(self) -> frozenset[str]:
        """Return the namespaces with objects beyond the limit whose statuses do not say so yet."""
        with self._lock:
            return self._objects.untold

    def take_untold(self, namespace: str) -> ObjectIdentity | None:
        """Return one of these objects, whose status is written now; None if there is none."""
        with self._lock:
            return next(iter(self._objects.take_untold(namespace, 1)), None)

    def tell_again(self, key: Key) -> None:
        """Note that the status of such an object could not be written."""
        with self._lock:
            self._objects.tell_again(key)

    def absent(self) -> frozenset[Key]:
        """Return the objects that have come within the limit, and whose content is not known."""
        with self._lock:
            return self._objects.absent

    def restore(self, item: RuleObjectForm) -> None:
        """Add the content of such an object, unless it has gone or came meanwhile."""
        identity = _identity(item)
        with self._lock:
            self._objects.restore(identity, self._seen(identity, item, None))
            self.changed.set()

    def replacement(self) -> RuleObjectList:
        """Return an empty list that replaces the content of the store when it is committed."""
        return RuleObjectList(self)

    def put(self, item: RuleObjectForm) -> None:
        """Add an object, or update it."""
        identity = _identity(item)
        with self._lock:
            before = self._objects.values.get(identity.key)
            after = self._put(self._objects, identity, item, before)
            if (before and before.content) != (after and after.content):
                self.changed.set()
            if after is not None and after.status is not (before and before.status):
                self._changed_statuses.add(identity.namespace)

    def remove(self, namespace: str | None, name: str) -> None:
        """Delete an object; an unknown one is not an error."""
        key = namespace or "", name
        with self._lock:
            if key in self._objects.values:
                self.changed.set()
            self._objects.remove(key)

    def collect(self, objects: OldestObjects[_Seen], item: RuleObjectForm) -> None:
        """Add an object of a list, with the known values that are equal."""
        identity = _identity(item)
        with self._lock:
            self._put(objects, identity, item, self._objects.values.get(identity.key))

    def replace(self, objects: OldestObjects[_Seen]) -> None:
        """Put a whole list in the place of all objects."""
        with self._lock:
            before = self._objects.values
            self._changed_statuses |= {
                key[0]
                for key, seen in objects.values.items()
                if key not in before or before[key].status is not seen.status
            }
            self._objects = objects
            self.changed.set()

    def _put(
        self, objects: OldestObjects[_Seen], identity: ObjectIdentity, item: RuleObjectForm, before: _Seen | None
    ) -> _Seen | None:
        """Add an object to these; return what is kept of it, None if it is beyond the limit."""
        is_told = isinstance(item.status, dict) and says_too_many(item.status, identity.generation)
        objects.put(identity, self._seen(identity, item, before), is_told=is_told)
        return objects.values.get(identity.key)

    def _seen(self, identity: ObjectIdentity, item: RuleObjectForm, before: _Seen | None) -> _Seen:
        """Return an object with the parts of `before` that are equal."""
        content = ObjectContent(
            identity.namespace, identity.name, identity.uid, identity.generation, identity.created, item.spec
        )
        status = item.status if isinstance(item.status, dict) else {}
        if before is None:
            return _Seen(content, SeenStatus(identity.uid, status, self._clock()))
        is_same = (before.status.uid, before.status.content) == (identity.uid, status)
        return _Seen(
            before.content if before.content == content else content,
            before.status if is_same else SeenStatus(identity.uid, status, self._clock()),
        )


class RuleObjectList:
    """A new list, which takes the place of everything in its store."""

    def __init__(self, store: RuleObjectStore) -> None:
        self._store = store
        self._objects: OldestObjects[_Seen] = OldestObjects(store.most)

    def put(self, item: RuleObjectForm) -> None:
        """Add an object."""
        self._store.collect(self._objects, item)

    def commit(self) -> None:
        """Replace the content of the store."""
        self._store.replace(self._objects)


def _identity(item: RuleObjectForm) -> ObjectIdentity:
    metadata = item.metadata
    return ObjectIdentity(metadata.namespace or "", metadata.name, metadata.uid, metadata.generation, metadata.created)
