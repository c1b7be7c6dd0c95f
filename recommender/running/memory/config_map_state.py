"""The state of the ConfigMap of a memory, as this process knows it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class ConfigMapState:
    """The state of one ConfigMap as this process knows it. Its lock guards it, and is held during requests.

    Only `wanted` may be replaced without the lock.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    document: Mapping[str, Any] | None = None
    """The ConfigMap as last read or written; None if there is none."""
    is_known: bool = False
    """Whether `document` is the server's last version; if not, it must be read before the next write."""
    needs_load: bool = True
    is_foreign: bool = False
    ours: str | None = None
    """The content from which this process continues."""
    sent: str | None = None
    """The content of a write with an unknown outcome."""
    wanted: str | None = None
    written_at: float | None = None

    @property
    def is_due(self) -> bool:
        """Whether the wanted content still has to be written."""
        return self.wanted not in {None, self.ours} and not self.needs_load


class ForeignConfigMapError(Exception):
    """The ConfigMap belongs to another client."""
