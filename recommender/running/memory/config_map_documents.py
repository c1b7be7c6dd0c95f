"""The ConfigMaps that hold memories: their labels, their content, and their state as this process knows it."""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adapter.foundation.service.runtime.logs import fields
from recommender.running.memory.memory_document import MemoryDocumentError, decode_memory, decode_shard

if TYPE_CHECKING:
    from recommender.running.memory.store_protocol import MemoryKey, StoredMemory


_log = logging.getLogger(__name__)

DATA_KEY = "memory.json"
SHARD_DATA_KEY = "memory.json.gz"
MANAGED_BY = "tidewatch-recommender"
LABELS = {"app.kubernetes.io/managed-by": MANAGED_BY, "app.kubernetes.io/component": "recommender"}
_SHOWN_CHARACTERS = 2000
"""How many characters of unusable content are written to the log, the only place where such content is kept."""


def place_of(key: MemoryKey) -> tuple[str, str]:
    """Return the field of the ConfigMap that has the content, and the key in that field; shards are binary data."""
    return ("data", DATA_KEY) if key.shard is None else ("binaryData", SHARD_DATA_KEY)


def content_of(key: MemoryKey, document: Mapping[str, Any] | None) -> str | None:
    """Return the content of a ConfigMap; None if it has none."""
    part, data_key = place_of(key)
    content = ((document or {}).get(part) or {}).get(data_key)
    return content if isinstance(content, str) else None


def decode_content(key: MemoryKey, content: str) -> StoredMemory:
    """Return the memory in the content of a ConfigMap. Raises MemoryDocumentError."""
    if key.shard is None:
        return decode_memory(key.recommendation, content)
    try:
        compressed = base64.b64decode(content, validate=True)
    except ValueError as error:
        raise MemoryDocumentError(f"it is not base64: {error}") from error
    return decode_shard(key.recommendation, compressed)


def decode_or_log(key: MemoryKey, config_map: str, content: str) -> StoredMemory | None:
    """Return the decoded content. Content that cannot be used is written to the log, and the result is None."""
    try:
        return decode_content(key, content)
    except MemoryDocumentError as error:
        what = "the recommendation starts" if key.shard is None else "the targets in it start"
        _log.error(
            "a stored memory cannot be used: %s without cool-downs and holds",
            what,
            extra=fields(
                recommendation=key.recommendation,
                config_map=config_map,
                problem=str(error),
                content=content[:_SHOWN_CHARACTERS],
            ),
        )
        return None


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
