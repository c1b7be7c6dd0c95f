"""The watch of the objects of the kind Recommendation, in all namespaces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.stores.values import ValueStore
from adapter.foundation.cluster.values.state import ObjectKind
from adapter.foundation.cluster.watch.doubts import when_empty
from adapter.foundation.cluster.watch.whole_objects.served import ServedKinds, ServedReflector
from adapter.foundation.cluster.watch.whole_objects.watching import AnyObjectForm, whole_object
from adapter.foundation.sources.kubernetes.errors import NotFoundError
from adapter.foundation.sources.kubernetes.list_watch import WHOLE_OBJECTS, ListWatch
from adapter.foundation.sources.kubernetes.reflector import Reflector
from recommender.configuration.objects.object_reading import RecommendationObject, object_of
from recommender.configuration.objects.object_settings import GROUP, KIND, PLURAL

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.kubernetes.errors import KubernetesError
    from adapter.foundation.sources.kubernetes.list_watch import WatchSettings

OBJECTS: ObjectKind = ObjectKind(GROUP, PLURAL, KIND)
_Store: TypeAlias = "ValueStore[AnyObjectForm, RecommendationObject]"


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
    """The objects of the last list and of the changes since then (`ValueStore`)."""

    @property
    def known(self) -> Mapping[tuple[str, str], RecommendationObject]: ...


@dataclass(frozen=True, slots=True)
class ObjectWatch:
    """What is known of the objects. For any number of threads."""

    _reflector: ObjectReflector
    _store: KnownObjects

    def run(self, stop: threading.Event) -> None:
        """Watch until the stop; where the kind is not installed, wait until it is."""
        self._reflector.run(stop)

    def known(self) -> Mapping[str, RecommendationObject] | None:
        """Return all objects by `NAMESPACE/NAME`; None while it is not known which there are."""
        if isinstance(self._reflector.refusal, NotFoundError):
            # The kind is not installed, or was removed with its objects.
            return {}
        if not self._reflector.synced or self._reflector.began_empty:
            return None
        return {each.key: each for each in self._store.known.values()}


def object_watch(client: KubernetesClient, settings: WatchSettings, changed: Callable[[], None]) -> ObjectWatch:
    """Return a watch, which runs when its `run` is called. `changed` is called whenever an object has changed."""
    kinds = ServedKinds(client, settings.pace)
    # The version in which the objects came; lists do not repeat it in each item.
    served: list[Resource] = []
    store: _Store = ValueStore(lambda form: _convert(served[-1], form), lambda each: each.key, changed)
    reflector = partial(_reflector, client, settings, store, served)
    return ObjectWatch(ServedReflector(OBJECTS, kinds, reflector, settings), store)


def _reflector(
    client: KubernetesClient,
    settings: WatchSettings,
    store: _Store,
    served: list[Resource],
    resource: Resource,
    failed: Callable[[KubernetesError], None],
) -> Reflector[AnyObjectForm]:
    served[:] = [resource]
    return Reflector(
        client, ListWatch(resource, WHOLE_OBJECTS), AnyObjectForm, store, settings, failed, when_empty(store)
    )


def _convert(resource: Resource, form: AnyObjectForm) -> RecommendationObject | None:
    try:
        return object_of(whole_object(resource, form))
    except (KeyError, TypeError, RecursionError) as error:
        raise FactError(f"an object of the kind {KIND} cannot be read: {error}") from error
