"""What lists and watches tell of an object, whole or as `PartialObjectMetadata`: its metadata alone is read."""

from __future__ import annotations

from typing import Annotated

import msgspec

NO_VERSIONS = frozenset({"", "0"})
"""Not versions of anything: a watch from these begins anywhere, and tells of no object that is gone."""


class Metadata(msgspec.Struct, gc=False):
    """What is kept of an object."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    namespace: str | None = None
    labels: dict[str, str] | None = None


class Item(msgspec.Struct, gc=False):
    """An object of a list, or of an event that is no bookmark."""

    metadata: Metadata


class _Version(msgspec.Struct, gc=False, rename={"version": "resourceVersion"}):
    version: str


class Versioned(msgspec.Struct, gc=False):
    """An object of any event, a bookmark's too."""

    metadata: _Version


class WatchEvent(msgspec.Struct):
    """A line of a watch."""

    type: str
    object: msgspec.Raw
