"""The watch of the objects of the kind Recommendation, in all namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import ObjectKind
from adapter.foundation.cluster.watch.doubted_lists import when_empty
from adapter.foundation.cluster.watch.whole_objects.served import ServedKinds, ServedReflector
from adapter.foundation.cluster.watch.whole_objects.watching import AnyObjectForm
from adapter.foundation.sources.kubernetes.errors import KubernetesError, NotFoundError
from adapter.foundation.sources.kubernetes.lists.list_watch import WHOLE_OBJECTS, ListWatch, WatchSettings
from adapter.foundation.sources.kubernetes.watches.reflector import Reflector
from recommender.configuration.objects.object_settings import GROUP, KIND, PLURAL
from recommender.running.objects.object_store import RecommendationStore, recommendation_store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from recommender.configuration.objects.object_reading import RecommendationObject

OBJECTS: ObjectKind = ObjectKind(GROUP, PLURAL, KIND)


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
