"""Watches of whole objects, and their stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from adapter.foundation.cluster.stores.value_stores import ValueStore
from adapter.foundation.cluster.watch.doubted_lists import when_empty
from adapter.foundation.cluster.watch.whole_objects.served import ServedKinds, ServedReflector
from adapter.foundation.objects.metadata import ObjectMeta
from adapter.foundation.sources.kubernetes.lists.list_watch import WHOLE_OBJECTS, ListWatch, WatchSettings
from adapter.foundation.sources.kubernetes.watches.reflector import Reflector

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.cluster.values.state import JsonObject, ObjectKind
    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.kubernetes.errors import KubernetesError


class _SizeField(msgspec.Struct, gc=False, rename={"replicas": "f:replicas"}, omit_defaults=True):
    replicas: dict[str, Any] | None = None


class _SpecFields(msgspec.Struct, gc=False, rename={"spec": "f:spec"}, omit_defaults=True):
    spec: _SizeField | None = None


class FieldManager(msgspec.Struct, gc=False, rename={"fields": "fieldsV1"}, omit_defaults=True):
    """Who wrote fields of an object and when; of the fields, only `spec.replicas` is kept."""

    manager: str = ""
    time: str | None = None
    fields: _SpecFields | None = None

    @property
    def wrote_size(self) -> bool:
        """Return whether the manager owns `spec.replicas`."""
        return self.fields is not None and self.fields.spec is not None and self.fields.spec.replicas is not None


_RENAMED: Final = {
    "created": "creationTimestamp",
    "deleted": "deletionTimestamp",
    "owners": "ownerReferences",
    "managed": "managedFields",
}


class AnyMeta(ObjectMeta, gc=False, rename=_RENAMED, omit_defaults=True):
    """The metadata of an object, without finalizers, which may be larger than the rest.

    Of `managedFields`, which may be larger still, a whole object keeps only the managers of `spec.replicas`.
    """

    uid: str = ""
    annotations: dict[str, str] | None = None
    created: str | None = None
    deleted: str | None = None
    generation: int | None = None
    owners: list[dict[str, Any]] | None = None
    managed: list[FieldManager] | None = None


class AnyObjectForm(msgspec.Struct, omit_defaults=True):
    """The parts that all objects have."""

    metadata: AnyMeta
    spec: Any = None
    status: Any = None
    data: Any = None
    template: Any = None


def whole_object(resource: Resource, form: AnyObjectForm) -> JsonObject:
    """Return the object with its kind, which lists do not repeat in each item."""
    if form.metadata.managed is not None:
        form.metadata.managed = [each for each in form.metadata.managed if each.wrote_size] or None
    content: dict[str, object] = msgspec.to_builtins(form)
    spec = content.get("spec")
    if resource.kind == "Lease" and isinstance(spec, dict) and isinstance(spec.get("renewTime"), str):
        # Its holder renews it every two seconds, which does not change the cluster.
        spec["renewTime"] = spec["renewTime"][: len("2026-01-31T08:00")] + ":00Z"
    if resource.kind == "VerticalPodAutoscaler":
        # Its recommender writes the status every minute, which does not change what it sizes.
        content.pop("status", None)
    if resource.kind == "ScaledObject":
        # Only the target that it names counts. The rest may be large, and KEDA writes the status at each query.
        identity = {"namespace": form.metadata.namespace, "name": form.metadata.name}
        reference = spec.get("scaleTargetRef") if isinstance(spec, dict) else None
        content = {"metadata": identity, "spec": {"scaleTargetRef": reference}}
    return {"apiVersion": resource.api_version, "kind": resource.kind} | content


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
        return Reflector(client, which, AnyObjectForm, store, settings, failed, when_empty(store))

    return ServedReflector(kind, kinds, reflector, settings), store


def _place(value: JsonObject) -> str:
    metadata = value.get("metadata")
    return f"{metadata.get('namespace', '')}/{metadata.get('name')}" if isinstance(metadata, dict) else ""
