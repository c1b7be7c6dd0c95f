"""Reads the objects of a JSON or YAML file: a single object, or a List, as kubectl prints and accepts them.

Both formats are read in slices of the pace, as a file may contain all pods of a large cluster. Anything that is not a
Kubernetes object is refused, with its line if that is known. Of most kinds only the metadata is read, and of a
CustomResourceDefinition the kind that it defines. An object of a kind with a form of its own is decoded as that Struct,
by the same decoder from JSON, from YAML and from a watch.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from adapter.foundation.objects.decoders import converted, decoder_of
from adapter.foundation.objects.metadata import states_kind
from adapter.foundation.objects.resources import Resource
from adapter.foundation.sources.kubernetes.lists.items import (
    ItemsError,
    JsonList,
    ListHead,
    decode_json,
    start_of_items,
)
from adapter.foundation.sources.yaml_objects import YamlObjectsError, read_yaml_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from adapter.foundation.objects.metadata import KindObject
    from adapter.foundation.sources.kubernetes.lists.items import Document
    from adapter.foundation.sources.yaml_objects import YamlObject, YamlValue
    from adapter.foundation.time.pace import Pace


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
    """The part of an object that is read of every kind."""

    kind: str = ""
    api_version: str = ""
    metadata: ManifestMetadata = msgspec.field(default_factory=ManifestMetadata)
    spec: msgspec.Raw = msgspec.Raw()
    """JSON, or empty; only read of CustomResourceDefinitions."""


class GroupKind(NamedTuple):
    """A kind of objects in any version of its API group."""

    group: str
    kind: str


ObjectForms: TypeAlias = "Mapping[GroupKind, type[msgspec.Struct]]"
"""The Structs of the kinds that are needed whole."""


class FileObject(NamedTuple):
    """An object of a file."""

    manifest: Manifest
    whole: msgspec.Struct | None
    """The object in the form of its kind; None if its kind has no form."""
    content: bytes | msgspec.Raw = b""
    """The object in JSON, where it was read as a whole; it must not be kept."""


class UnreadableObject(NamedTuple):
    """An object of a file that is not what it should be."""

    manifest: Manifest
    """With what can be read of it."""
    content: bytes | msgspec.Raw
    reason: str


LeaveOut: TypeAlias = "Callable[[UnreadableObject], None]"
"""Takes an object that is left out."""


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


def read_manifests(body: bytes, *, is_json: bool, pace: Pace) -> Iterator[list[Manifest]]:
    """Yield the metadata of the objects of a file in order, part by part. Raises ManifestError, at any point.

    A part should be processed before the next, as that belongs to the slice of the pace in which it was read.
    """
    for part in _checked_batches(_json(body, pace) if is_json else _yaml(body, {}, pace)):
        yield [found.manifest for found in part]


def read_objects(
    body: Document, forms: ObjectForms, *, is_json: bool, pace: Pace, leave_out: LeaveOut | None = None
) -> Iterator[list[FileObject]]:
    """Yield the objects of a file as `read_manifests` does; those of kinds with a form also whole.

    With `leave_out`, an object that cannot be read is passed to that. Only JSON may be mapped into memory.
    """
    reader = _ObjectReader(forms, leave_out)
    if is_json:
        return _checked_batches(_whole_json(body, reader, pace), leave_out)
    return _checked_batches(_yaml(bytes(body), forms, pace, leave_out), leave_out)


def group_kind(manifest: Manifest) -> GroupKind:
    """Return the kind of an object."""
    return _group_kind(manifest.api_version, manifest.kind)


@lru_cache(maxsize=1024)
def _group_kind(api_version: str, kind: str) -> GroupKind:
    return GroupKind(sys.intern(api_version.rpartition("/")[0]), sys.intern(kind))


def _checked_batches(
    parts: Iterator[list[FileObject]], leave_out: LeaveOut | None = None
) -> Iterator[list[FileObject]]:
    try:
        for part in parts:
            if leave_out is None:
                for found in part:
                    _check(found.manifest)
                yield part
            else:
                yield [found for found in part if _is_usable(found, leave_out)]
    except (ItemsError, YamlObjectsError) as error:
        raise ManifestError(str(error), error.line) from error
    except RecursionError as error:
        raise ManifestError("nested too deeply") from error


def _is_usable(found: FileObject, leave_out: LeaveOut) -> bool:
    try:
        _check(found.manifest)
    except ManifestError as error:
        leave_out(UnreadableObject(found.manifest, found.content, str(error)))
        return False
    return True


def defined_kind(manifest: Manifest) -> Resource | None:
    """Return the kind that a CustomResourceDefinition defines; None for other objects. Raises ManifestError."""
    if manifest.kind != "CustomResourceDefinition":
        return None
    try:
        spec = _DEFINITION.decode(manifest.spec)
    except msgspec.DecodeError as error:
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


def _json(body: bytes, pace: Pace) -> Iterator[list[FileObject]]:
    if start_of_items(body) < 0:
        with pace.slice():
            manifest = decode_json(body, Manifest)
        yield [FileObject(manifest, None)]
        return
    listed = JsonList(body, Manifest)
    prefix = listed.prefix
    for part in listed.batches(pace):
        for manifest in part:
            _complete(manifest, prefix.kind, prefix.api_version)
        yield [FileObject(manifest, None) for manifest in part]


def _whole_json(body: Document, reader: _ObjectReader, pace: Pace) -> Iterator[list[FileObject]]:
    if start_of_items(body) < 0:
        with pace.slice():
            found = reader.read(bytes(body), ListHead())
        yield [found] if found else []
        return
    listed = JsonList(body, msgspec.Raw)
    prefix = listed.prefix
    for part in listed.batches(pace):
        yield [found for content in part if (found := reader.read(content, prefix)) is not None]


class _ObjectReader:
    """Decodes objects in JSON. In a list, most are of the kind of the one before, and are decoded once then."""

    def __init__(self, forms: ObjectForms, leave_out: LeaveOut | None) -> None:
        self._forms = forms
        self._leave_out = leave_out
        self._decoders: dict[type[msgspec.Struct], msgspec.json.Decoder[Any] | None] = {}
        self._expected: tuple[GroupKind, msgspec.json.Decoder[Any]] | None = None

    def read(self, content: bytes | msgspec.Raw, around: ListHead) -> FileObject | None:
        """Return an object of a list; None if it is left out. Raises ManifestError and ItemsError."""
        if (found := self._as_expected(content)) is not None:
            return found
        try:
            manifest = decode_json(bytes(content), Manifest)
        except ItemsError as error:
            if self._leave_out is None:
                raise
            self._leave_out(UnreadableObject(_salvage_manifest(_any_json(content)), content, str(error)))
            return None
        _complete(manifest, around.kind, around.api_version)
        form = self._forms.get(kind := group_kind(manifest))
        self._expected = (kind, decoder) if form and (decoder := self._decoder(form)) else None
        try:
            return _whole(content, manifest, form)
        except ManifestError as error:
            if self._leave_out is None:
                raise
            self._leave_out(UnreadableObject(manifest, content, str(error)))
            return None

    def _decoder(self, form: type[msgspec.Struct]) -> msgspec.json.Decoder[Any] | None:
        if form not in self._decoders:
            self._decoders[form] = decoder_of(form) if states_kind(form) else None
        return self._decoders[form]

    def _as_expected(self, content: bytes | msgspec.Raw) -> FileObject | None:
        """Decode an object as the kind of the previous one; return None if it is of another kind, or cannot be read."""
        if self._expected is None:
            return None
        kind, decoder = self._expected
        try:
            whole = decoder.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        manifest = _manifest_of(whole)
        return FileObject(manifest, whole, content) if group_kind(manifest) == kind else None


def _manifest_of(whole: KindObject) -> Manifest:
    metadata = whole.metadata
    return Manifest(whole.kind, whole.api_version, ManifestMetadata(metadata.name, metadata.namespace, metadata.labels))


def _salvage_manifest(content: object) -> Manifest:
    """Return what can be read of an object that is not what it should be."""
    found = content if isinstance(content, dict) else {}
    metadata = found.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    return Manifest(
        _text(found.get("kind")),
        _text(found.get("apiVersion")),
        ManifestMetadata(_text(named.get("name")), _text(named.get("namespace")) or None),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _any_json(content: bytes | msgspec.Raw) -> object:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _whole(
    content: bytes | msgspec.Raw, manifest: Manifest, form: type[msgspec.Struct] | None, line: int | None = None
) -> FileObject:
    """Decode an object in JSON as the form of its kind. Raises ManifestError."""
    try:
        return FileObject(manifest, None if form is None else decoder_of(form).decode(content), content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ManifestError(f"{manifest.kind} {manifest.metadata.name}: {error}", line) from error


def _yaml(body: bytes, forms: ObjectForms, pace: Pace, leave_out: LeaveOut | None = None) -> Iterator[list[FileObject]]:
    for found in read_yaml_objects(body, pace):
        try:
            yield [_yaml_object(found, forms)]
        except ManifestError as error:
            if leave_out is None:
                raise
            content = dict(found.content)
            leave_out(UnreadableObject(_salvage_manifest(content), _as_json(content, found.line), str(error)))


def _yaml_object(found: YamlObject, forms: ObjectForms) -> FileObject:
    content = dict(found.content)
    spec = content.pop("spec", None)
    try:
        manifest = converted(content, Manifest)
    except msgspec.ValidationError as error:
        raise ManifestError(str(error), found.line) from error
    if manifest.kind == "CustomResourceDefinition":
        manifest.spec = msgspec.Raw(_as_json(spec, found.line))
    _complete(manifest, found.list_kind, found.list_api_version)
    form = forms.get(group_kind(manifest))
    if form is None:
        return FileObject(manifest, None)
    return _whole(_as_json(dict(found.content), found.line), manifest, form, found.line)


def _as_json(value: YamlValue, line: int) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        raise ManifestError(f"text that is not UTF-8: {error.reason}", line) from error


def _complete(manifest: Manifest, list_kind: str, list_api_version: str) -> None:
    """Fill in the kind of an item of a typed list (`PodList`), which may omit what the list says for all of them."""
    if not manifest.kind and list_kind.endswith("List"):
        manifest.kind = list_kind.removesuffix("List")
        manifest.api_version = manifest.api_version or list_api_version


def _check(manifest: Manifest) -> None:
    needed = {"kind": manifest.kind, "apiVersion": manifest.api_version, "metadata.name": manifest.metadata.name}
    for key, value in needed.items():
        if not value:
            called = f"{manifest.kind or 'object'} {manifest.metadata.name or 'without a name'}"
            raise ManifestError(f"{called}: {key} is missing")
    if manifest.kind == "List":
        raise ManifestError("a List inside a List: put its items into the outer one")
