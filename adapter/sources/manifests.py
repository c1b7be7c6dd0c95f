"""Reads the objects out of a JSON or YAML file: a single object, or a List, as kubectl prints and takes them.

Both forms are read in slices of the pace, since a file may hold all pods of a large cluster. What is not of Kubernetes'
form of an object is refused, with the line where it is known; what an object says beyond its kind and metadata is not
looked at, except which kind a CustomResourceDefinition defines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from adapter.objects.resources import Resource
from adapter.sources.kubernetes.items import ItemsError, JsonList, decode_json, start_of_items
from adapter.sources.yaml_objects import YamlObjectsError, read_yaml_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.timing.pace import Pace


class ManifestError(ValueError):
    """The file is not what it should be.

    Attributes:
        line: from 1; None where it is not known.
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        """`reason` is what `str()` gives, without file and line."""
        super().__init__(reason)
        self.line = line


class ManifestMetadata(msgspec.Struct, gc=False):
    """The part of an object's metadata that is kept."""

    name: str = ""
    namespace: str | None = None
    labels: dict[str, str] | None = None


class Manifest(msgspec.Struct, gc=False, rename={"api_version": "apiVersion"}):
    """An object."""

    kind: str = ""
    api_version: str = ""
    metadata: ManifestMetadata = msgspec.field(default_factory=ManifestMetadata)
    spec: msgspec.Raw = msgspec.Raw()
    """JSON, or empty; read for CustomResourceDefinitions alone."""


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
    """Yield the objects of a file in order, part by part. Raises ManifestError, at any point.

    The work on a part belongs to the slice of the pace in which it was read.
    """
    try:
        for part in _json(body, pace) if is_json else _yaml(body, pace):
            for manifest in part:
                _check(manifest)
            yield part
    except (ItemsError, YamlObjectsError) as error:
        raise ManifestError(str(error), error.line) from error
    except RecursionError as error:
        raise ManifestError("nested too deeply") from error


def defined_kind(manifest: Manifest) -> Resource | None:
    """Return the kind that the object defines, if it is a CustomResourceDefinition. Raises ManifestError."""
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


def _json(body: bytes, pace: Pace) -> Iterator[list[Manifest]]:
    if start_of_items(body) < 0:
        with pace.slice():
            manifest = decode_json(body, Manifest)
        yield [manifest]
        return
    listed = JsonList(body, Manifest)
    for part in listed.parts(pace):
        for manifest in part:
            _complete(manifest, listed.prefix.kind, listed.prefix.api_version)
        yield part


def _yaml(body: bytes, pace: Pace) -> Iterator[list[Manifest]]:
    for found in read_yaml_objects(body, pace):
        content = dict(found.content)
        spec = content.pop("spec", None)
        try:
            manifest = msgspec.convert(content, Manifest)
        except msgspec.ValidationError as error:
            raise ManifestError(str(error), found.line) from error
        if manifest.kind == "CustomResourceDefinition":
            manifest.spec = msgspec.Raw(msgspec.json.encode(spec))
        _complete(manifest, found.list_kind, found.list_api_version)
        yield [manifest]


def _complete(manifest: Manifest, list_kind: str, list_api_version: str) -> None:
    """Items of a typed list (`PodList`) may leave out what the list says for all of them."""
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
        raise ManifestError("a List inside of a List: put its items into the outer one")
