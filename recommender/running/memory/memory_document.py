"""The memory of a recommendation as a JSON document with a schema version and a checksum, and back. Pure.

    {"apiVersion": "tidewatch.io/v1alpha1", "kind": "RecommendationMemory", "schemaVersion": 5,
     "recommendation": "coredns", "checksum": "sha256:…", "memory": {"last": …, "own": {"type": "proportional", …}}}

The checksum covers the bytes of `memory`, so that edits by hand and truncated files are noticed. `own` is the document
of the kind's memory (`decisions.memory.KindMemory`). `former_memory_formats` reads documents of former versions.

Versions that read schema version 5 refuse unknown fields of `memory`, and ignore others. So what came later is beside
it: `"uids": ["…"], "uidsChecksum": "sha256:…"`.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, Union

import msgspec

from adapter.foundation.files.gzip_format import SMALL, GzipError, compress, decompress
from adapter.foundation.objects.decoders import convert, decoder_of
from recommender.decisions.memory import Count, KindMemory, LastValue, Memory, Time
from recommender.decisions.record import TargetReference
from recommender.kinds.table import all_kinds
from recommender.running.memory.former_memory_formats import FORMER_VERSIONS, decode_former
from recommender.running.memory.store_protocol import StoredMemory

API_VERSION = "tidewatch.io/v1alpha1"
KIND = "RecommendationMemory"
SCHEMA_VERSION = 5
_MOST_BYTES = 64 * 1024 * 1024
_MOST_SHARDS = 4096
"""The largest number of shards, more than the largest `forEach.max` needs. All shards are read before any target is
decided."""


class MemoryDocumentError(ValueError):
    """The text is not a memory of this recommendation, or is damaged; the message says why it cannot be used."""


class _Last(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    decided: Time
    confirmed: Time
    replicas: Count | None = None


class _Memory(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    last: _Last | None = None
    changes: list[Time] = []
    own: Any = None
    """The memory of the kind; in a document that was read, it consists of dictionaries and lists."""
    known: dict[str, Count] = {}


class _Target(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    namespace: str
    name: str
    memory: _Memory


class _Whole(_Memory, omit_defaults=True):
    targets: list[_Target] = []
    """The memories of targets, with `forEach`."""


class _Version(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    schema_version: Count


class _Document(msgspec.Struct, rename="camel", omit_defaults=True):
    api_version: str
    kind: str
    schema_version: int
    recommendation: str
    checksum: str
    memory: msgspec.Raw
    shards: Count = 0
    """Total number of shards of the recommendation; 0 if this document is not a shard."""
    uids: list[str] = []
    """The UID of the object that the memory is about, and then of that of each of its targets, in their order; an empty
    text for each that is not known. The list is empty if none is known."""
    uids_checksum: str = ""
    """The checksum of the UIDs; empty if there are none."""


_WHOLE = decoder_of(_Whole)
_VERSION = decoder_of(_Version)
_DOCUMENT = decoder_of(_Document)


def encode_memory(recommendation: str, memory: Memory) -> str:
    """Return the document of a memory. Raises ValueError for a number that JSON cannot hold."""
    return _encode(recommendation, memory, shards=0).decode()


def encode_shard(recommendation: str, memory: Memory, shards: int) -> bytes:
    """Return the document of one of `shards` shards, compressed. Raises ValueError for a number JSON cannot hold."""
    return compress(_encode(recommendation, memory, shards=shards), SMALL)


def _encode(recommendation: str, memory: Memory, *, shards: int) -> bytes:
    by_target = sorted(memory.by_target.items(), key=lambda item: (item[0].namespace, item[0].name))
    targets = [
        _Target(target.api_version, target.kind, target.namespace, target.name, _Memory(*_stored_fields(each)))
        for target, each in by_target
    ]
    content = msgspec.json.encode(_Whole(*_stored_fields(memory), targets=targets), order="deterministic")
    if b"null" in content:
        # If all numbers are finite, only texts contain the word.
        _raise_unless_finite(recommendation, content)
    document = _Document(
        API_VERSION, KIND, SCHEMA_VERSION, recommendation, _checksum(content), msgspec.Raw(content), shards
    )
    uids = ["" if each.own is None else each.own.target_uid for each in (memory, *(each for _, each in by_target))]
    if any(uids):
        document.uids, document.uids_checksum = uids, _checksum(msgspec.json.encode(uids))
    return msgspec.json.encode(document)


def _stored_fields(memory: Memory) -> tuple[_Last | None, list[float], KindMemory | None, dict[str, int]]:
    last = memory.last
    return (
        None if last is None else _Last(last.decided, last.confirmed, last.replicas),
        list(memory.changes),
        None if memory.own is None else memory.own.stored,
        dict(memory.known),
    )


def _raise_unless_finite(recommendation: str, content: bytes) -> None:
    try:
        _memory_of(content)
    except msgspec.DecodeError as error:
        raise ValueError(f"recommendation {recommendation!r}: a number of its memory is not finite") from error


def decode_shard(recommendation: str, content: bytes) -> StoredMemory:
    """Return the shard in a compressed document. Raises the same errors as `decode_memory`."""
    try:
        text = decompress(content, _MOST_BYTES)
    except GzipError as error:
        raise MemoryDocumentError(str(error)) from error
    found = decode_memory(recommendation, text)
    if not 1 <= found.shards <= _MOST_SHARDS:
        raise MemoryDocumentError(f"it says that there are {found.shards} shards: there are 1 to {_MOST_SHARDS}")
    return found


def decode_memory(recommendation: str, text: str | bytes) -> StoredMemory:
    """Return the memory in a document. Raises MemoryDocumentError, also for the schema version of a newer program."""
    try:
        version = _VERSION.decode(text)
        if (version.api_version, version.kind) != (API_VERSION, KIND):
            raise MemoryDocumentError(f"it is a {version.kind} of {version.api_version}, not a {KIND} of {API_VERSION}")
        if version.schema_version > SCHEMA_VERSION:
            raise MemoryDocumentError(
                f"it has schema version {version.schema_version}, and this program reads up to {SCHEMA_VERSION}"
            )
        document = _DOCUMENT.decode(text)
        if document.recommendation != recommendation:
            raise MemoryDocumentError(f"it belongs to recommendation {document.recommendation!r}")
        if document.checksum != _checksum(bytes(document.memory)):
            raise MemoryDocumentError("its checksum is wrong: it was cut off or edited")
        if document.schema_version in FORMER_VERSIONS:
            return StoredMemory(decode_former(document.memory), document.shards, is_current=False)
        return StoredMemory(_with_uids(_memory_of(document.memory), document), document.shards)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise MemoryDocumentError(f"it is not a document of this program: {error}") from error


def _with_uids(memory: Memory, document: _Document) -> Memory:
    """Return the memory with the UIDs of the document. Raises MemoryDocumentError."""
    uids = document.uids
    if not uids and not document.uids_checksum:
        return memory
    if document.uids_checksum != _checksum(msgspec.json.encode(uids)) or len(uids) != 1 + len(memory.by_target):
        raise MemoryDocumentError("the UIDs of its targets are not those of its memory: it was cut off or edited")
    by_target = {
        target: _about(each, uid) for (target, each), uid in zip(memory.by_target.items(), uids[1:], strict=True)
    }
    return replace(_about(memory, uids[0]), by_target=by_target)


def _about(memory: Memory, uid: str) -> Memory:
    return memory if memory.own is None or not uid else replace(memory, own=memory.own.about_target(uid))


def _memory_of(content: bytes | msgspec.Raw) -> Memory:
    whole, own = _WHOLE.decode(content), _form()
    by_target = {
        TargetReference(each.api_version, each.kind, each.namespace, each.name): _memory(each.memory, own)
        for each in whole.targets
    }
    memory = _memory(whole, own)
    return replace(memory, by_target=by_target)


def _form() -> object:
    """Return the union of the memories of all kinds, which the field `type` distinguishes."""
    forms = tuple(kind.memory for kind in all_kinds() if kind.memory is not KindMemory)
    return Union[forms]  # noqa: UP007 - which ones is known at run time only


def _memory(content: _Memory, form: object) -> Memory:
    last = content.last
    own: KindMemory | None = None if content.own is None else convert(content.own, form)
    return Memory(
        last=None if last is None else LastValue(last.replicas, last.decided, last.confirmed),
        changes=tuple(content.changes),
        own=own,
        known=content.known,
    )


def _checksum(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
