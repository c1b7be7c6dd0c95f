"""The ConfigMaps that hold memories: their labels, where their content is, and how it is decoded."""

from __future__ import annotations

import base64
import logging
from typing import TYPE_CHECKING, Any

from adapter.foundation.service.runtime.logs import fields
from recommender.running.memory.memory_document import MemoryDocumentError, decode_memory, decode_shard

if TYPE_CHECKING:
    from collections.abc import Mapping

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
