"""An object of any kind, as a watch decodes it, and as the dictionary that it becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from adapter.objects.metadata import ObjectMeta

if TYPE_CHECKING:
    from adapter.cluster.state import JsonObject
    from adapter.objects.resources import Resource


class AnyMeta(
    ObjectMeta,
    gc=False,
    rename={"created": "creationTimestamp", "deleted": "deletionTimestamp", "owners": "ownerReferences"},
    omit_defaults=True,
):
    """The metadata of an object without `managedFields`, which may be larger than the rest, and finalizers."""

    uid: str = ""
    annotations: dict[str, str] | None = None
    created: str | None = None
    deleted: str | None = None
    generation: int | None = None
    owners: list[dict[str, Any]] | None = None


class AnyObjectForm(msgspec.Struct, omit_defaults=True):
    """The parts that objects have."""

    metadata: AnyMeta
    spec: Any = None
    status: Any = None
    data: Any = None
    template: Any = None


def whole_object(resource: Resource, form: AnyObjectForm) -> JsonObject:
    """Return the object; lists do not repeat the kind in each item."""
    content: dict[str, object] = msgspec.to_builtins(form)
    return {"apiVersion": resource.api_version, "kind": resource.kind} | content
