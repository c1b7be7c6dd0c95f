"""The parts of a file's objects that are read: the metadata, and the kinds that CustomResourceDefinitions define."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.objects.resources import Resource


class ManifestError(ValueError):
    """The file is not what it should be.

    Attributes:
        line: from 1; None if it is not known.
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        """`reason` is the text of `str()`, without file and line."""
        super().__init__(reason)
        self.line = line


class ManifestMetadata(msgspec.Struct, gc=False):
    """The part of an object's metadata that is kept."""

    name: str = ""
    namespace: str | None = None
    labels: dict[str, str] | None = None


class Manifest(msgspec.Struct, gc=False, rename={"api_version": "apiVersion"}):
    """The part of an object that is read for every kind."""

    kind: str = ""
    api_version: str = ""
    metadata: ManifestMetadata = msgspec.field(default_factory=ManifestMetadata)
    spec: msgspec.Raw = msgspec.Raw()
    """JSON, or empty; read only for CustomResourceDefinitions."""


class GroupKind(NamedTuple):
    """A kind of object, in any version of its API group."""

    group: str
    kind: str


ObjectForms: TypeAlias = "Mapping[GroupKind, type[msgspec.Struct]]"
"""The Structs by which the kinds that are needed whole are decoded."""


class FileObject(NamedTuple):
    """An object of a file."""

    manifest: Manifest
    whole: msgspec.Struct | None
    """The object in the form of its kind; None if its kind has no form."""
    content: bytes | msgspec.Raw = b""
    """The object in JSON, if it was read as a whole. Callers must not keep it."""


class UnreadableObject(NamedTuple):
    """An object of a file that is not what it should be."""

    manifest: Manifest
    """The part of it that can be read."""
    content: bytes | msgspec.Raw
    reason: str


LeaveOut: TypeAlias = "Callable[[UnreadableObject], None]"
"""Called with an object that is left out."""


class _Names(msgspec.Struct):
    plural: str
    kind: str
    singular: str = ""


class _Version(msgspec.Struct):
    name: str
    served: bool = True


class _Definition(msgspec.Struct):
    group: str
    names: _Names
    scope: str
    versions: list[_Version]


_DEFINITION = decoder_of(_Definition)


def group_kind(manifest: Manifest) -> GroupKind:
    """Return the kind of an object."""
    return _group_kind(manifest.api_version, manifest.kind)


@lru_cache(maxsize=1024)
def _group_kind(api_version: str, kind: str) -> GroupKind:
    return GroupKind(sys.intern(api_version.rpartition("/")[0]), sys.intern(kind))


def defined_kind(manifest: Manifest) -> Resource | None:
    """Return the kind that a CustomResourceDefinition serves; None for other objects. Raises ManifestError."""
    if manifest.kind != "CustomResourceDefinition":
        return None
    try:
        spec = _DEFINITION.decode(manifest.spec)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ManifestError(f"CustomResourceDefinition {manifest.metadata.name}: spec: {error}") from error
    served = [version.name for version in spec.versions if version.served]
    return (
        Resource(
            group=spec.group,
            version=served[0],
            plural=spec.names.plural,
            singular=spec.names.singular or spec.names.kind.lower(),
            kind=spec.names.kind,
            namespaced=spec.scope == "Namespaced",
        )
        if served
        else None
    )
