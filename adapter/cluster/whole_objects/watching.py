"""Watches of whole objects, and where they keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from adapter.cluster.stores import ValueStore
from adapter.cluster.whole_objects.forms import AnyObjectForm, whole_object
from adapter.cluster.whole_objects.served import ServedReflector
from adapter.sources.kubernetes.list_watch import WHOLE_OBJECTS, ListWatch
from adapter.sources.kubernetes.reflector import Reflector

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.cluster.state import JsonObject, ObjectKind
    from adapter.cluster.whole_objects.served import ServedKinds
    from adapter.objects.resources import Resource
    from adapter.sources.kubernetes.client import KubernetesClient
    from adapter.sources.kubernetes.errors import KubernetesError
    from adapter.sources.kubernetes.settings import WatchSettings

ObjectStore: TypeAlias = "ValueStore[AnyObjectForm, JsonObject]"


def object_watch(
    kind: ObjectKind,
    kinds: ServedKinds,
    client: KubernetesClient,
    settings: WatchSettings,
    changed: Callable[[], None],
) -> tuple[ServedReflector, ObjectStore]:
    """Return a watch of a kind, which runs when its `run` is called, and the store that it writes."""
    # The version in which the objects came; lists do not repeat it in each item.
    served: list[Resource] = []
    store: ObjectStore = ValueStore(lambda form: whole_object(served[-1], form), _place, changed)

    def reflector(resource: Resource, failed: Callable[[KubernetesError], None]) -> Reflector[AnyObjectForm]:
        served[:] = [resource]
        selector = f"metadata.name={kind.name}" if kind.name else ""
        which = ListWatch(resource, WHOLE_OBJECTS, kind.namespace or None, field_selector=selector)
        return Reflector(client, which, AnyObjectForm, store, settings, failed)

    return ServedReflector(kind, kinds, reflector, settings), store


def _place(value: JsonObject) -> str:
    metadata = value.get("metadata")
    return f"{metadata.get('namespace', '')}/{metadata.get('name')}" if isinstance(metadata, dict) else ""
