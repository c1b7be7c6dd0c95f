"""The state of the ConfigMap of a memory in this process, and the requests for it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.sources.kubernetes.writing import Fence, Reply


class MemoryClient(Protocol):
    """The requests to the API server (`writing.ObjectClient`)."""

    def get(self, path: str, *, seconds: float) -> Reply:
        """Return the object."""
        ...

    def create(self, collection: str, document: Mapping[str, Any], *, seconds: float) -> dict[str, Any]:
        """Create an object in a collection."""
        ...

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        """Put an object over the version that it names; sent at most once."""
        ...


@dataclass(slots=True)
class ConfigMapState:
    """The state of one ConfigMap as this process knows it. Guarded by its lock, which is held during requests.

    `wanted` alone may be replaced without the lock.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    document: Mapping[str, Any] | None = None
    """As last read or written; None: there is no ConfigMap."""
    is_known: bool = False
    """Whether `document` is what the server had last; False: read before the next write."""
    needs_load: bool = True
    is_foreign: bool = False
    ours: str | None = None
    """The content from which this process goes on."""
    sent: str | None = None
    """The content of a write whose outcome is not known."""
    wanted: str | None = None
    written_at: float | None = None


class ForeignConfigMapError(Exception):
    """The ConfigMap belongs to another client."""
