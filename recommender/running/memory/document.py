"""The memory of a recommendation as a JSON document with a schema version and a checksum, and back. Pure.

    {"apiVersion": "tidewatch.io/v1alpha1", "kind": "RecommendationMemory", "schemaVersion": 1,
     "recommendation": "coredns", "checksum": "sha256:…", "memory": {…}}

The checksum is that of the bytes of `memory`: an edit by hand, or a file that was cut off, is noticed.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import msgspec

from recommender.decisions.memory import LastParameters, LastValue, Memory
from recommender.decisions.record import TargetReference
from recommender.running.memory.size_document import SizeContent, content_of, size_memory, size_numbers
from recommender.running.memory.store import StoredShard

if TYPE_CHECKING:
    from collections.abc import Iterable

API_VERSION = "tidewatch.io/v1alpha1"
KIND = "RecommendationMemory"
SCHEMA_VERSION = 3
_FIRST_VERSION = 1
"""Of memories without `policy` and `targets`, so that an older version of this program reads what it knows."""
_SECOND_VERSION = 2
"""Likewise of those without `clusterSize`."""

_COMPRESSION = 6
_GZIP = 16 + 15
"""`wbits` of zlib: a gzip header, and the largest window."""
_MOST_BYTES = 64 * 1024 * 1024

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


class _Memory(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    last: _Last | None
    changes: list[float]
    parameters: _Parameters | None
    rungs: dict[str, int]
    policy: dict[str, float] = {}
    """Absent in documents of versions without predictive recommendations."""
    cluster_size: SizeContent | None = msgspec.field(default=None, name="clusterSize")
    """Likewise without cluster size recommendations."""


class _Target(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    namespace: str
    name: str
    memory: _Memory


class _Whole(_Memory, omit_defaults=True):
    targets: list[_Target] = []
    """With `forEach`."""


class _Version(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    schema_version: _Count


class _Document(msgspec.Struct, rename="camel", omit_defaults=True):
    api_version: str
    kind: str
    schema_version: int
    recommendation: str
    checksum: str
    memory: msgspec.Raw
    shards: _Count = 0
    """How many shards the layout of this one has; 0: this is no shard."""


def encode_memory(recommendation: str, memory: Memory) -> str:
    """Return the document of a memory. Raises ValueError for a number that JSON cannot hold."""
    return _encoded(recommendation, memory, shards=0).decode()


def encode_shard(recommendation: str, shard: StoredShard) -> bytes:
    """Return the document of a shard, compressed. Raises ValueError for a number that JSON cannot hold."""
    return gzip.compress(_encoded(recommendation, shard.memory, shards=shard.count), _COMPRESSION, mtime=0)


def _encoded(recommendation: str, memory: Memory, *, shards: int) -> bytes:
    if not all(map(math.isfinite, _numbers(memory))):
        raise ValueError(f"recommendation {recommendation!r}: a number of its memory is not finite")
    whole = _content(memory)
    targets = [
        _Target(target.api_version, target.kind, target.namespace, target.name, _content(each))
        for target, each in sorted(memory.by_target.items(), key=lambda item: (item[0].namespace, item[0].name))
    ]
    content = msgspec.json.encode(
        _Whole(whole.last, whole.changes, whole.parameters, whole.rungs, whole.policy, whole.cluster_size, targets)
    )
    version = _SECOND_VERSION if whole.policy or targets or shards else _FIRST_VERSION
    version = version if whole.cluster_size is None else SCHEMA_VERSION
    document = _Document(API_VERSION, KIND, version, recommendation, _checksum(content), msgspec.Raw(content), shards)
    return msgspec.json.encode(document)


def _numbers(memory: Memory) -> Iterable[float]:
    yield from memory.changes
    yield from memory.policy.values()
    if memory.last:
        yield from (memory.last.decided, memory.last.confirmed)
    if memory.cluster_size is not None:
        yield from size_numbers(memory.cluster_size)
    for each in memory.by_target.values():
        yield from _numbers(each)


def _content(memory: Memory) -> _Memory:
    last, parameters = memory.last, memory.parameters
    return _Memory(
        last=_Last(last.replicas, last.decided, last.confirmed) if last else None,
        changes=list(memory.changes),
        parameters=_Parameters(parameters.mode, parameters.text, parameters.resource_version) if parameters else None,
        rungs=dict(sorted(memory.rungs.items())),
        policy=dict(sorted(memory.policy.items())),
        cluster_size=None if memory.cluster_size is None else content_of(memory.cluster_size),
    )


def decode_memory(recommendation: str, text: str) -> Memory:
    """Return the memory that a document holds. Raises MemoryDocumentError, and NewerMemoryError."""
    return _decoded(recommendation, text)[0]


def decode_shard(recommendation: str, content: bytes) -> StoredShard:
    """Return the shard that a compressed document holds. Raises MemoryDocumentError, and NewerMemoryError."""
    unpacking = zlib.decompressobj(_GZIP)
    try:
        text = unpacking.decompress(content, _MOST_BYTES)
    except zlib.error as error:
        raise MemoryDocumentError(f"it cannot be decompressed: {error}") from error
    if not unpacking.eof:
        raise MemoryDocumentError("it is cut off, or too large")
    memory, count = _decoded(recommendation, text)
    if count < 1:
        raise MemoryDocumentError("it does not say how many shards there are")
    return StoredShard(count, memory)


def _decoded(recommendation: str, text: str | bytes) -> tuple[Memory, int]:
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
        whole = msgspec.json.decode(document.memory, type=_Whole)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise MemoryDocumentError(f"it is not a document of this program: {error}") from error
    by_target = {
        TargetReference(each.api_version, each.kind, each.namespace, each.name): _memory(each.memory)
        for each in whole.targets
    }
    return replace(_memory(whole), by_target=by_target), document.shards


def _memory(content: _Memory) -> Memory:
    last, parameters = content.last, content.parameters
    return Memory(
        last=LastValue(last.replicas, last.decided, last.confirmed) if last else None,
        changes=tuple(content.changes),
        parameters=LastParameters(parameters.mode, parameters.text, parameters.resource_version)
        if parameters
        else None,
        rungs=content.rungs,
        policy=content.policy,
        cluster_size=None if content.cluster_size is None else size_memory(content.cluster_size),
    )


def _checksum(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
