"""The memory of a recommendation as a JSON document with a schema version and a checksum, and back. Pure.

    {"apiVersion": "tidewatch.io/v1alpha1", "kind": "RecommendationMemory", "schemaVersion": 1,
     "recommendation": "coredns", "checksum": "sha256:…", "memory": {…}}

The checksum is that of the bytes of `memory`: an edit by hand, or a file that was cut off, is noticed.
"""

from __future__ import annotations

import hashlib
import math
from typing import Annotated

import msgspec

from recommender.decisions.memory import LastParameters, LastValue, Memory

API_VERSION = "tidewatch.io/v1alpha1"
KIND = "RecommendationMemory"
SCHEMA_VERSION = 1

_Count = Annotated[int, msgspec.Meta(ge=0)]


class MemoryDocumentError(ValueError):
    """The text is no memory of this recommendation, or was damaged; the message says which."""


class NewerMemoryError(MemoryDocumentError):
    """The document was written by a newer version of this program."""


class _Last(msgspec.Struct, forbid_unknown_fields=True):
    replicas: _Count
    decided: float
    confirmed: float


class _Parameters(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    mode: str
    text: str
    resource_version: str


class _Memory(msgspec.Struct, forbid_unknown_fields=True):
    last: _Last | None
    changes: list[float]
    parameters: _Parameters | None
    rungs: dict[str, int]


class _Version(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    schema_version: _Count


class _Document(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    schema_version: int
    recommendation: str
    checksum: str
    memory: msgspec.Raw


def encode_memory(recommendation: str, memory: Memory) -> str:
    """Return the document of a memory. Raises ValueError for a number that JSON cannot hold."""
    last, parameters = memory.last, memory.parameters
    times = (*memory.changes, *((last.decided, last.confirmed) if last else ()))
    if not all(map(math.isfinite, times)):
        raise ValueError(f"recommendation {recommendation!r}: a time of its memory is not finite")
    content = msgspec.json.encode(
        _Memory(
            last=_Last(last.replicas, last.decided, last.confirmed) if last else None,
            changes=list(memory.changes),
            parameters=_Parameters(parameters.mode, parameters.text, parameters.resource_version)
            if parameters
            else None,
            rungs=dict(sorted(memory.rungs.items())),
        )
    )
    document = _Document(API_VERSION, KIND, SCHEMA_VERSION, recommendation, _checksum(content), msgspec.Raw(content))
    return msgspec.json.encode(document).decode()


def decode_memory(recommendation: str, text: str) -> Memory:
    """Return the memory that a document holds. Raises MemoryDocumentError, and NewerMemoryError."""
    try:
        version = msgspec.json.decode(text, type=_Version)
        if (version.api_version, version.kind) != (API_VERSION, KIND):
            raise MemoryDocumentError(f"it is a {version.kind} of {version.api_version}, not a {KIND} of {API_VERSION}")
        if version.schema_version > SCHEMA_VERSION:
            raise NewerMemoryError(
                f"it has schema version {version.schema_version}, and this program reads up to {SCHEMA_VERSION}"
            )
        document = msgspec.json.decode(text, type=_Document)
        if document.recommendation != recommendation:
            raise MemoryDocumentError(f"it belongs to recommendation {document.recommendation!r}")
        if document.checksum != _checksum(bytes(document.memory)):
            raise MemoryDocumentError("its checksum is wrong: it was cut off or edited")
        return _memory(msgspec.json.decode(document.memory, type=_Memory))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise MemoryDocumentError(f"it is not a document of this program: {error}") from error


def _memory(content: _Memory) -> Memory:
    last, parameters = content.last, content.parameters
    return Memory(
        last=LastValue(last.replicas, last.decided, last.confirmed) if last else None,
        changes=tuple(content.changes),
        parameters=LastParameters(parameters.mode, parameters.text, parameters.resource_version)
        if parameters
        else None,
        rungs=content.rungs,
    )


def _checksum(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
