"""Reads the objects of a JSON or YAML file whole, as the Structs of their kinds.

The decoder is the one that decodes lists and watches, so the same object gives equal Structs from a watch, from JSON
and from YAML. An object that cannot be decoded is left out, as in a watch; a file that is not JSON or YAML is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from adapter.sources.kubernetes.items import JsonList, decode_json, start_of_items
from adapter.sources.kubernetes.left_out import named
from adapter.sources.manifests import (
    GroupKind,
    Manifest,
    ManifestError,
    as_json,
    check,
    complete,
    group_kind,
    unreadable_as_manifest_error,
)
from adapter.sources.yaml_objects import read_yaml_objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.objects.resources import Resource
    from adapter.sources.stores import KubernetesObject
    from adapter.timing.pace import Pace

ObjectForms: TypeAlias = "Mapping[type[KubernetesObject], Resource]"
"""The kinds that are needed whole, by the msgspec Struct that an object of the kind is decoded as."""

_DEFAULT_NAMESPACE = "default"
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class WholeObject(NamedTuple):
    """An object of a file."""

    content: KubernetesObject
    resource: Resource
    labels: Mapping[str, str]
    line: int | None
    """First line of the object, from 1; None in JSON."""


class _Item(NamedTuple):
    """An object of a file in JSON."""

    content: bytes
    line: int | None = None
    list_kind: str = ""
    list_api_version: str = ""


def read_whole_objects(
    body: bytes, forms: ObjectForms, *, is_json: bool, pace: Pace
) -> Iterator[WholeObject | ManifestError]:
    """Yield the objects of these kinds in order, and the error of each object that cannot be read.

    Objects of other kinds are skipped. An object without a namespace is in `default`, as with kubectl, if its kind has
    namespaces. Raises ManifestError, at any point, if the file is not JSON or YAML with objects or Lists of objects.
    """
    by_kind = {GroupKind(resource.group, resource.kind): (form, resource) for form, resource in forms.items()}
    with unreadable_as_manifest_error():
        for item in _json_items(body, pace) if is_json else _yaml_items(body, pace):
            try:
                found = _decoded(item, by_kind)
            except ManifestError as error:
                yield error
                continue
            if found is not None:
                yield found


def _json_items(body: bytes, pace: Pace) -> Iterator[_Item]:
    if start_of_items(body) < 0:
        yield _Item(_checked(body, pace))
        return
    listed = JsonList(body, msgspec.Raw)
    prefix = listed.prefix
    for part in listed.parts(pace):
        for content in part:
            yield _Item(bytes(content), None, prefix.kind, prefix.api_version)


def _checked(body: bytes, pace: Pace) -> bytes:
    """Return the body if it is a JSON document. Raises ItemsError."""
    with pace.slice():
        decode_json(body, msgspec.Raw)
    return body


def _yaml_items(body: bytes, pace: Pace) -> Iterator[_Item]:
    for found in read_yaml_objects(body, pace):
        content = as_json(dict(found.content), found.line)
        yield _Item(content, found.line, found.list_kind, found.list_api_version)


def _decoded(item: _Item, by_kind: Mapping[GroupKind, tuple[type[KubernetesObject], Resource]]) -> WholeObject | None:
    """Return the object as the Struct of its kind; None if its kind has none. Raises ManifestError."""
    manifest = _manifest(item)
    if (found := by_kind.get(group_kind(manifest))) is None:
        return None
    form, resource = found
    namespace, name = manifest.metadata.namespace, manifest.metadata.name
    called = f"{manifest.kind} {namespace}/{name}" if namespace else f"{manifest.kind} {name}"
    if manifest.api_version != resource.api_version:
        reason = f"apiVersion {manifest.api_version} is not read: write the object as {resource.api_version}"
        raise ManifestError(f"{called}: {reason}", item.line)
    needs_namespace = resource.namespaced and not namespace
    content = _in_default_namespace(item.content) if needs_namespace else item.content
    try:
        return WholeObject(msgspec.json.decode(content, type=form), resource, manifest.metadata.labels or {}, item.line)
    except _UNDECODABLE as error:
        raise ManifestError(f"{called}: {error}", item.line) from error


def _manifest(item: _Item) -> Manifest:
    try:
        manifest = msgspec.json.decode(item.content, type=Manifest)
    except _UNDECODABLE as error:
        found = named(msgspec.Raw(item.content))
        called = f"object {found.name}" if found else "object without a name"
        raise ManifestError(f"{called}: {error}", item.line) from error
    complete(manifest, item.list_kind, item.list_api_version)
    check(manifest, item.line)
    return manifest


def _in_default_namespace(content: bytes) -> bytes:
    """Return the object with the namespace that a cluster would give it."""
    document = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    metadata = msgspec.json.decode(document["metadata"], type=dict[str, msgspec.Raw])
    metadata["namespace"] = msgspec.Raw(msgspec.json.encode(_DEFAULT_NAMESPACE))
    document["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
    return msgspec.json.encode(document)
