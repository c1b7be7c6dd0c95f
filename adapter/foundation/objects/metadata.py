"""The part of an object's metadata that identifies it and that selectors match, as lists and watches send it."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Protocol

import msgspec


class ObjectMeta(msgspec.Struct, gc=False):
    """The fields of `meta/v1 ObjectMeta` that are kept."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    namespace: str | None = None
    """Namespace of the object; None if it is cluster-scoped."""
    labels: dict[str, str] | None = None


class PartialObjectMetadata(msgspec.Struct, gc=False):
    """An object of which only the metadata is kept; whole objects can be decoded into it, too."""

    metadata: ObjectMeta


class KindObject(Protocol):
    """An object that also keeps its kind, so that it can be decoded before the kind is known."""

    metadata: ObjectMeta
    kind: str
    api_version: str


@cache
def states_kind(form: type[msgspec.Struct]) -> bool:
    """Return whether a Struct has the fields `kind` and `apiVersion` of its object, and metadata."""
    types = {field.name: field.type for field in msgspec.structs.fields(form)}
    metadata = types.get("metadata")
    return isinstance(metadata, type) and issubclass(metadata, ObjectMeta) and {"kind", "api_version"} <= types.keys()
