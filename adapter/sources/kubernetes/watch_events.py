"""The lines of a watch: type and object of an event, and the resourceVersion that it advances the watch to."""

from __future__ import annotations

import msgspec

NO_VERSIONS = frozenset({"", "0"})
"""Values that are not versions: a watch from one of them begins anywhere, and does not report deleted objects."""


class _Version(msgspec.Struct, gc=False, rename={"version": "resourceVersion"}):
    version: str


class Versioned(msgspec.Struct, gc=False):
    """The object of any event, including a bookmark."""

    metadata: _Version


class WatchEvent(msgspec.Struct):
    """A line of a watch."""

    type: str
    object: msgspec.Raw
