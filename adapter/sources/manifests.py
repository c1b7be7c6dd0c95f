"""Reads the objects of a JSON or YAML file: a single object, or a List, as kubectl prints and accepts them.

Both formats are read in slices of the pace, as a file may contain all pods of a large cluster. Anything that is not a
Kubernetes object is refused, with its line if that is known. Of most kinds only the metadata is read, and of a
CustomResourceDefinition the kind that it defines. An object of a kind with a form of its own is decoded as that Struct,
by the same decoder from JSON, from YAML and from a watch.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from adapter.objects.resources import Resource
from adapter.sources.kubernetes.items import ItemsError, JsonList, decode_json, start_of_items
from adapter.sources.yaml_objects import YamlObjectsError, read_yaml_objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.sources.yaml_objects import YamlValue
    from adapter.timing.pace import Pace


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


def read_manifests(body: bytes, *, is_json: bool, pace: Pace) -> Iterator[list[Manifest]]:
    """Yield the metadata of the objects of a file in order, part by part. Raises ManifestError, at any point.

    A part should be processed before the next, as that belongs to the slice of the pace in which it was read.
    """
    for part in _guarded(_json(body, pace) if is_json else _yaml(body, {}, pace)):
        yield [found.manifest for found in part]


def read_objects(body: bytes, forms: ObjectForms, *, is_json: bool, pace: Pace) -> Iterator[list[FileObject]]:
    """Yield the objects of a file as `read_manifests` does; those of kinds with a form also whole."""
    return _guarded(_whole_json(body, forms, pace) if is_json else _yaml(body, forms, pace))


def group_kind(manifest: Manifest) -> GroupKind:
    """Return the kind of an object."""
    return GroupKind(sys.intern(manifest.api_version.rpartition("/")[0]), sys.intern(manifest.kind))


def _guarded(parts: Iterator[list[FileObject]]) -> Iterator[list[FileObject]]:
    try:
        for part in parts:
            for found in part:
                _check(found.manifest)
            yield part
    except (ItemsError, YamlObjectsError) as error:
        raise ManifestError(str(error), error.line) from error
    except RecursionError as error:
        raise ManifestError("nested too deeply") from error


def defined_kind(manifest: Manifest) -> Resource | None:
    """Return the kind that a CustomResourceDefinition defines; None for other objects. Raises ManifestError."""
    if manifest.kind != "CustomResourceDefinition":
        return None
    try:
        spec = msgspec.json.decode(manifest.spec, type=_Definition)
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
    for part in listed.parts(pace):
        for manifest in part:
            _complete(manifest, prefix.kind, prefix.api_version)
        yield [FileObject(manifest, None) for manifest in part]


def _whole_json(body: bytes, forms: ObjectForms, pace: Pace) -> Iterator[list[FileObject]]:
    if start_of_items(body) < 0:
        with pace.slice():
            found = _whole(body, decode_json(body, Manifest), forms)
        yield [found]
        return
    listed = JsonList(body, msgspec.Raw)
    prefix = listed.prefix
    for part in listed.parts(pace):
        objects = []
        for content in part:
            manifest = decode_json(bytes(content), Manifest)
            _complete(manifest, prefix.kind, prefix.api_version)
            objects.append(_whole(content, manifest, forms))
        yield objects


def _whole(content: bytes | msgspec.Raw, manifest: Manifest, forms: ObjectForms, line: int | None = None) -> FileObject:
    """Decode an object in JSON as the form of its kind."""
    form = forms.get(group_kind(manifest))
    try:
        return FileObject(manifest, None if form is None else msgspec.json.decode(content, type=form))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ManifestError(f"{manifest.kind} {manifest.metadata.name}: {error}", line) from error


def _yaml(body: bytes, forms: ObjectForms, pace: Pace) -> Iterator[list[FileObject]]:
    for found in read_yaml_objects(body, pace):
        content = dict(found.content)
        spec = content.pop("spec", None)
        try:
            manifest = msgspec.convert(content, Manifest)
        except msgspec.ValidationError as error:
            raise ManifestError(str(error), found.line) from error
        if manifest.kind == "CustomResourceDefinition":
            manifest.spec = msgspec.Raw(_as_json(spec, found.line))
        _complete(manifest, found.list_kind, found.list_api_version)
        if group_kind(manifest) in forms:
            yield [_whole(_as_json(dict(found.content), found.line), manifest, forms, found.line)]
        else:
            yield [FileObject(manifest, None)]


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
