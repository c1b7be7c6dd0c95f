"""Where the watch keeps objects of the kind Recommendation: of each namespace, as many as its quota lets be read."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from adapter.foundation.cluster.stores.oldest import ObjectIdentity, OldestObjects
from adapter.foundation.cluster.watch.whole_objects.watching import AnyObjectForm, whole_object
from recommender.configuration.objects.object_reading import object_of
from recommender.configuration.objects.object_settings import KIND
from recommender.running.objects.object_status import says_over_quota

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.cluster.stores.oldest import Key
    from adapter.foundation.objects.resources import Resource
    from recommender.configuration.objects.object_reading import RecommendationObject

_log = logging.getLogger(__name__)


class RecommendationStore:
    """The objects of a watch. One thread watches, any thread reads.

    Of the objects beyond the limit of their namespace, only what identifies them is kept.
    """

    def __init__(self, resource: Callable[[], Resource], most: int, changed: Callable[[], None]) -> None:
        """Keep so many objects of each namespace; `resource` returns the version in which they come.

        `changed` is called whenever one of those that are kept has changed.
        """
        self._resource = resource
        self._changed = changed
        self._lock = threading.Lock()
        self._objects: OldestObjects[RecommendationObject] = OldestObjects(most)

    def __len__(self) -> int:
        """Return the number of all objects."""
        return len(self._objects)

    @property
    def known(self) -> Mapping[Key, RecommendationObject]:
        """The objects within the limits, by namespace and name."""
        with self._lock:
            return dict(self._objects.values)

    @property
    def most(self) -> int:
        """The limit of each namespace."""
        return self._objects.most

    def limit(self, most: int) -> None:
        """Change the limit of each namespace."""
        with self._lock:
            self._objects.limit(most)

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

    def restore(self, item: AnyObjectForm) -> None:
        """Add the content of such an object, unless it has gone or came meanwhile."""
        found = self._converted(item)
        if found is None:
            return
        with self._lock:
            self._objects.restore(_identity(found), found)
        self._changed()

    def replacement(self) -> RecommendationList:
        """Return an empty list that replaces the content of the store when it is committed."""
        return RecommendationList(self)

    def put(self, item: AnyObjectForm) -> None:
        """Add an object, or update it; one that is being deleted counts as gone."""
        key = item.metadata.namespace or "", item.metadata.name
        found = self._converted(item)
        if found is None:
            self.remove(*key)
            return
        with self._lock:
            before = self._objects.values.get(key)
            self._put(self._objects, found)
            is_same = before == self._objects.values.get(key)
        if not is_same:
            self._changed()

    def remove(self, namespace: str | None, name: str) -> None:
        """Delete an object; one that is not known is no error."""
        key = namespace or "", name
        with self._lock:
            was_kept = key in self._objects.values
            self._objects.remove(key)
        if was_kept:
            self._changed()

    def collect(self, objects: OldestObjects[RecommendationObject], item: AnyObjectForm) -> None:
        """Add an object of a list."""
        found = self._converted(item)
        if found is not None:
            self._put(objects, found)

    def replace(self, objects: OldestObjects[RecommendationObject]) -> None:
        """Put a whole list in the place of all objects."""
        with self._lock:
            objects.limit(self._objects.most)
            is_same = objects.values == self._objects.values
            self._objects = objects
        if not is_same:
            self._changed()

    @staticmethod
    def _put(objects: OldestObjects[RecommendationObject], found: RecommendationObject) -> None:
        objects.put(_identity(found), found, is_told=says_over_quota(found.status, found.generation))

    def _converted(self, item: AnyObjectForm) -> RecommendationObject | None:
        """Return the object; None if it does not count, or cannot be read."""
        try:
            return object_of(whole_object(self._resource(), item))
        except (KeyError, TypeError, RecursionError) as error:
            place = f"{item.metadata.namespace}/{item.metadata.name}"
            _log.warning("%s %s cannot be read, and does not count: %s", KIND, place, error)
            return None


class RecommendationList:
    """A new list, which takes the place of everything in its store."""

    def __init__(self, store: RecommendationStore) -> None:
        self._store = store
        self._objects: OldestObjects[RecommendationObject] = OldestObjects(store.most)

    def put(self, item: AnyObjectForm) -> None:
        """Add an object."""
        self._store.collect(self._objects, item)

    def commit(self) -> None:
        """Replace the content of the store."""
        self._store.replace(self._objects)


def _identity(found: RecommendationObject) -> ObjectIdentity:
    return ObjectIdentity(found.namespace, found.name, found.uid, found.generation, found.created)
