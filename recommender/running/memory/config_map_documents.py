"""ConfigMaps of memories: their labels, and the place of the content."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from recommender.running.memory.document import (
    MemoryDocumentError,
    decode_shard,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.running.memory.store import (
        MemoryKey,
        StoredShard,
    )

DATA_KEY = "memory.json"
SHARD_DATA_KEY = "memory.json.gz"
MANAGED_BY = "tidewatch-recommender"
LABELS = {"app.kubernetes.io/managed-by": MANAGED_BY, "app.kubernetes.io/component": "recommender"}


def place_of(key: MemoryKey) -> tuple[str, str]:
    """Return the part of the ConfigMap and the key in it: compressed data is not text."""
    return ("data", DATA_KEY) if key.shard is None else ("binaryData", SHARD_DATA_KEY)


def content_of(key: MemoryKey, document: Mapping[str, Any] | None) -> str | None:
    """Return the content of a ConfigMap; None if it has none."""
    part, data_key = place_of(key)
    content = ((document or {}).get(part) or {}).get(data_key)
    return content if isinstance(content, str) else None


def decode_shard_text(recommendation: str, content: str) -> StoredShard:
    """Return the shard of a content, which is compressed. Raises MemoryDocumentError."""
    try:
        compressed = base64.b64decode(content, validate=True)
    except ValueError as error:
        raise MemoryDocumentError(f"it is not base64: {error}") from error
    return decode_shard(recommendation, compressed)
