"""The part of an object's metadata that selecting and naming need, as lists and watches send it."""

from __future__ import annotations

from typing import Annotated

import msgspec


class ObjectMeta(msgspec.Struct, gc=False):
    """The fields of `meta/v1 ObjectMeta` that are kept."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    namespace: str | None = None
    """None for an object that lives in no namespace."""
    labels: dict[str, str] | None = None


class PartialObjectMetadata(msgspec.Struct, gc=False):
    """An object of which only the metadata is kept; whole objects decode into it, too."""

    metadata: ObjectMeta
