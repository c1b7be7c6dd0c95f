"""The watch of the objects of the kind Recommendation, and the store with as many of them as each quota permits."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.stores.oldest_objects import ObjectIdentity
from adapter.foundation.cluster.stores.quota_store import KeptObject, QuotaStore
from adapter.foundation.cluster.values.state import ObjectKind
from adapter.foundation.cluster.watch.doubted_lists import when_empty
from adapter.foundation.cluster.watch.whole_objects.served import ServedKinds, ServedReflector
from adapter.foundation.cluster.watch.whole_objects.watching import AnyObjectForm, whole_object
from adapter.foundation.sources.kubernetes.errors import KubernetesError, NotFoundError
from adapter.foundation.sources.kubernetes.lists.list_watch import WHOLE_OBJECTS, ListWatch, WatchSettings
from adapter.foundation.sources.kubernetes.watches.reflector import Reflector
from recommender.configuration.objects.object_reading import RecommendationObject, object_of
from recommender.configuration.objects.object_settings import GROUP, KIND, PLURAL
from recommender.running.objects.object_status import says_over_quota

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.sources.kubernetes.client import KubernetesClient

_log = logging.getLogger(__name__)

OBJECTS: Final = ObjectKind(GROUP, PLURAL, KIND)

RecommendationStore: TypeAlias = QuotaStore[AnyObjectForm, RecommendationObject]


def recommendation_store(
    resource: Callable[[], Resource], most: int, changed: Callable[[], None]
) -> RecommendationStore:
    """Return an empty store that keeps up to `most` objects of each namespace; those being deleted count as gone.

    `resource` returns the version of the received objects; `changed` is called whenever a kept object has changed.
    """

    def convert(item: AnyObjectForm, _before: RecommendationObject | None) -> KeptObject[RecommendationObject] | None:
        found = _object_from_form(resource(), item)
        if found is None:
            return None
        identity = ObjectIdentity(found.namespace, found.name, found.uid, found.generation, found.created)
        return KeptObject(identity, found, says_over_quota(found.status, found.generation))

    return QuotaStore(most, convert, lambda _changes: changed())


def _object_from_form(resource: Resource, item: AnyObjectForm) -> RecommendationObject | None:
    """Return the object; None if it takes no effect, or cannot be read."""
    try:
        return object_of(whole_object(resource, item))
    except (KeyError, TypeError, RecursionError) as error:
        _log.warning(
            "%s %s/%s cannot be read, and does not count: %s", KIND, item.metadata.namespace, item.metadata.name, error
        )
        return None


def known_objects(reflector: ServedReflector, store: RecommendationStore) -> Mapping[str, RecommendationObject] | None:
    """Return the objects that are read, by `NAMESPACE/NAME`; None while it is not known which objects exist."""
    if isinstance(reflector.refusal, NotFoundError):
        # The kind is not installed, or was removed with its objects.
        return {}
    if not reflector.synced or reflector.began_empty:
        return None
    return {each.key: each for each in store.known.values()}


def object_watch(
    client: KubernetesClient, settings: WatchSettings, most: int, changed: Callable[[], None]
) -> tuple[ServedReflector, RecommendationStore]:
    """Return a watch, which runs when its `run` is called, and the store that it fills.

    At most `most` objects of each namespace are read; `changed` is called whenever one of them has changed.
    """
    kinds = ServedKinds(client, settings.pace)
    # The version of the received objects; lists do not repeat it in each item.
    served: list[Resource] = []
    store = recommendation_store(lambda: served[-1], most, changed)

    def reflector(resource: Resource, failed: Callable[[KubernetesError], None]) -> Reflector[AnyObjectForm]:
        served[:] = [resource]
        which = ListWatch(resource, WHOLE_OBJECTS)
        return Reflector(client, which, AnyObjectForm, store, settings, failed, when_empty(store))

    return ServedReflector(OBJECTS, kinds, reflector, settings), store
