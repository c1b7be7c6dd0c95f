"""The state of the ConfigMap of a memory in this process, and the requests for it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


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
