"""Which objects to list and watch, in which form the API server sends them, and the lines of a watch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from adapter.sources.kubernetes.client import JSON, METADATA, METADATA_LIST

if TYPE_CHECKING:
    from adapter.objects.resources import Resource

NO_VERSIONS = frozenset({"", "0"})
"""Values that are not versions: a watch from one of them begins anywhere, and does not report deleted objects."""


@dataclass(frozen=True, slots=True)
class AcceptHeaders:
    """The `Accept` headers of a list and of a watch."""

    of_list: str
    of_watch: str


METADATA_ONLY = AcceptHeaders(METADATA_LIST, METADATA)
"""`PartialObjectMetadata`; a server that does not support it sends whole objects."""
WHOLE_OBJECTS = AcceptHeaders(JSON, JSON)


@dataclass(frozen=True, slots=True)
class ListWatch:
    """A collection of one kind, possibly restricted to a namespace and by selectors."""

    resource: Resource
    accept: AcceptHeaders = METADATA_ONLY
    namespace: str | None = None
    """None for all namespaces, and for kinds without a namespace."""
    label_selector: str = ""
    field_selector: str = ""

    @property
    def path(self) -> str:
        """Path of the collection."""
        resource = self.resource
        root = f"/apis/{resource.group}" if resource.group else "/api"
        within = f"namespaces/{self.namespace}/" if self.namespace else ""
        return f"{root}/{resource.version}/{within}{resource.plural}"

    def list_query(self, page_size: int) -> dict[str, str]:
        """Return the query of the first page; a list without a resourceVersion is the most recent state."""
        return self._selectors() | {"limit": str(page_size)}

    def watch_query(self, version: str, window_seconds: float) -> dict[str, str]:
        """Return the query of a watch from the resourceVersion that the server ends after the window."""
        return self._selectors() | {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(window_seconds)),
        }

    def _selectors(self) -> dict[str, str]:
        selectors = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {key: selector for key, selector in selectors.items() if selector}


class _Version(msgspec.Struct, gc=False, rename={"version": "resourceVersion"}):
    version: str


class Versioned(msgspec.Struct, gc=False):
    """The object of any event, including a bookmark."""

    metadata: _Version


class WatchEvent(msgspec.Struct):
    """A line of a watch."""

    type: str
    object: msgspec.Raw
