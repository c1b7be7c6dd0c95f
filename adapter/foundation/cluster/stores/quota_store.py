"""The store of a watch that keeps the oldest objects of each namespace whole, as many as a quota allows.

Of the objects beyond the quota of their namespace, only what identifies them is kept (`OldestObjects`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from adapter.foundation.cluster.stores.oldest_objects import Key, ObjectIdentity, OldestObjects
from adapter.foundation.sources.stores import CollectedList, KubernetesObject, object_key

F = TypeVar("F", bound=KubernetesObject)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class KeptObject(Generic[V]):
    """An object in the form in which the store keeps it."""

    identity: ObjectIdentity
    value: V
    is_reported: bool
    """Whether its status says that it is beyond the quota."""


@dataclass(frozen=True, slots=True)
class ObjectChange(Generic[V]):
    """A change of the objects within the quota: one has changed, entered or left."""

    key: Key
    before: V | None
    after: V | None


class QuotaStore(Generic[F, V]):
    """A store of objects, of which each namespace's oldest are kept whole, as many as the quota allows."""

    def __init__(
        self,
        most: int,
        convert: Callable[[F, V | None], KeptObject[V] | None],
        changed: Callable[[Sequence[ObjectChange[V]]], None],
    ) -> None:
        """Keep the values of at most this number of objects of each namespace.

        `convert` is called with an object and its former value, and returns None for an object that does not count.
        `changed` is called after each change of values, and once for a whole list. It is not called
        for an object that an older one pushes beyond the quota.
        """
        self._convert = convert
        self._changed = changed
        self._lock = threading.Lock()
        self._objects: OldestObjects[V] = OldestObjects(most)

    def __len__(self) -> int:
        """Return the number of all objects."""
        return len(self._objects)

    @property
    def most(self) -> int:
        """The quota of each namespace."""
        return self._objects.most

    @property
    def number_beyond(self) -> int:
        """The number of objects beyond the quotas of their namespaces."""
        with self._lock:
            return self._objects.number_beyond

    @property
    def known(self) -> Mapping[Key, V]:
        """The values of the objects within the quotas, by namespace and name."""
        with self._lock:
            return dict(self._objects.values)

    def value(self, key: Key) -> V | None:
        """Return the value of an object; None if there is no such object within the quota."""
        with self._lock:
            return self._objects.values.get(key)

    def limit(self, most: int) -> None:
        """Change the quota of each namespace."""
        with self._lock:
            self._objects.limit(most)

    def unreported(self) -> frozenset[str]:
        """Return the namespaces with objects beyond the quota whose statuses do not say so yet."""
        with self._lock:
            return self._objects.unreported

    def take_unreported(self, namespace: str) -> ObjectIdentity | None:
        """Return an object beyond the quota whose status the caller must write; None if there is none."""
        with self._lock:
            return next(iter(self._objects.take_unreported(namespace, 1)), None)

    def report_again(self, key: Key) -> None:
        """Let `take_unreported` return an object again, because its status could not be written."""
        with self._lock:
            self._objects.report_again(key)

    def absent(self) -> frozenset[Key]:
        """Return the objects that have come within the quota but whose content is not known."""
        with self._lock:
            return self._objects.absent

    def restore(self, item: F) -> None:
        """Add the content of an object of `absent`, unless the object was deleted or its content arrived meanwhile."""
        entry = self._convert(item, None)
        if entry is not None:
            self._change(entry.identity.key, lambda objects: objects.restore(entry.identity, entry.value))

    def replacement(self) -> CollectedList[OldestObjects[V], F]:
        """Return an empty list that replaces the content of the store when it is committed."""
        return CollectedList(OldestObjects(self.most, is_list=True), self._add, self._replace)

    def put(self, item: F) -> None:
        """Add or update an object; delete it if `convert` says that it no longer counts."""
        key = object_key(item)
        entry = self._convert(item, self.value(key))
        if entry is None:
            self.remove(*key)
        else:
            self._change(key, lambda objects: objects.put(entry.identity, entry.value, is_reported=entry.is_reported))

    def remove(self, namespace: str | None, name: str) -> None:
        """Delete an object; an unknown one is not an error."""
        key = namespace or "", name
        self._change(key, lambda objects: objects.remove(key))

    def _add(self, objects: OldestObjects[V], item: F) -> None:
        """Add an object of a list, unless it does not count."""
        entry = self._convert(item, self.value(object_key(item)))
        if entry is not None:
            objects.put(entry.identity, entry.value, is_reported=entry.is_reported)

    def _replace(self, objects: OldestObjects[V]) -> None:
        """Replace all objects by those of a whole list."""
        with self._lock:
            # The quota may have changed since the list began.
            objects.limit(self._objects.most)
            objects.end_list()
            before, after = self._objects.values, objects.values
            changes = [
                ObjectChange(key, before.get(key), after.get(key))
                for key in before.keys() | after.keys()
                if before.get(key) != after.get(key)
            ]
            self._objects = objects
        if changes:
            self._changed(changes)

    def _change(self, key: Key, make: Callable[[OldestObjects[V]], object]) -> None:
        """Change an object, and report it if its value has changed."""
        with self._lock:
            before = self._objects.values.get(key)
            make(self._objects)
            after = self._objects.values.get(key)
        if before != after:
            self._changed([ObjectChange(key, before, after)])
