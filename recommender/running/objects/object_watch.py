"""The watch of the objects of the kind Recommendation, in all namespaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

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
    import threading
    from collections.abc import Callable, Mapping

    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from recommender.configuration.objects.object_reading import RecommendationObject

OBJECTS: ObjectKind = ObjectKind(GROUP, PLURAL, KIND)


class ObjectReflector(Protocol):
    """A watch (`ServedReflector`)."""

    @property
    def synced(self) -> bool: ...

    @property
    def began_empty(self) -> bool: ...

    @property
    def refusal(self) -> Exception | None: ...

    def run(self, stop: threading.Event) -> None: ...


class KnownObjects(Protocol):
    """The objects of the last list and of the changes since then, as far as they are read (`RecommendationStore`)."""

    @property
    def known(self) -> Mapping[tuple[str, str], RecommendationObject]: ...


@dataclass(frozen=True, slots=True)
class ObjectWatch:
    """The known objects. For any number of threads."""

    _reflector: ObjectReflector
    _store: KnownObjects

    def run(self, stop: threading.Event) -> None:
        """Watch until `stop` is set; if the kind is not installed, wait until it is."""
        self._reflector.run(stop)

    def known(self) -> Mapping[str, RecommendationObject] | None:
        """Return the objects that are read, by `NAMESPACE/NAME`; None while it is not known which objects exist."""
        if isinstance(self._reflector.refusal, NotFoundError):
            # The kind is not installed, or was removed with its objects.
            return {}
        if not self._reflector.synced or self._reflector.began_empty:
            return None
        return {each.key: each for each in self._store.known.values()}


def object_watch(
    client: KubernetesClient, settings: WatchSettings, most: int, changed: Callable[[], None]
) -> tuple[ObjectWatch, RecommendationStore]:
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

    return ObjectWatch(ServedReflector(OBJECTS, kinds, reflector, settings), store), store
