"""Reads the objects of a JSON or YAML file: a single object, or a List, as kubectl prints and accepts them.

Both formats are read in slices of the pace, as a file may contain all pods of a large cluster. Anything that is not a
Kubernetes object is rejected, with its line if that is known. For most kinds, only the metadata is read; for a
CustomResourceDefinition, the kind that it defines is read, too. An object whose kind has a form is decoded as that
Struct, by the same decoder whether it comes from JSON, from YAML or from a watch.
"""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from adapter.foundation.objects.decoders import convert, decoder_of
from adapter.foundation.objects.metadata import KindObject, states_kind
from adapter.foundation.sources.kubernetes.lists.items import (
    Document,
    ItemsError,
    JsonList,
    ListHead,
    decode_json,
    start_of_items,
)
from adapter.foundation.sources.manifest_forms import (
    FileObject,
    GroupKind,
    LeaveOut,
    Manifest,
    ManifestError,
    ManifestMetadata,
    ObjectForms,
    UnreadableObject,
    group_kind,
)
from adapter.foundation.sources.yaml_objects import YamlObject, YamlObjectsError, YamlValue, read_yaml_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.time.pace import Pace

_Body = TypeVar("_Body", bound="Document")


def read_manifests(body: bytes, *, is_json: bool, pace: Pace) -> Iterator[list[Manifest]]:
    """Yield the metadata of a file's objects in order, part by part. May raise ManifestError at any point.

    Process each part before requesting the next, since its processing belongs to the slice in which it was read.
    """
    body = _in_utf8(body)
    for part in _checked_batches(_json(body, pace) if is_json else _yaml(body, {}, pace)):
        yield [found.manifest for found in part]


def read_objects(
    body: Document, forms: ObjectForms, *, is_json: bool, pace: Pace, leave_out: LeaveOut | None = None
) -> Iterator[list[FileObject]]:
    """Yield a file's objects as `read_manifests` does; objects whose kind is in `forms` are also decoded whole.

    If `leave_out` is given, an object that cannot be read is passed to it. Only JSON may be mapped into memory.
    """
    reader = _ObjectReader(forms, leave_out)
    body = _in_utf8(body)
    if is_json:
        return _checked_batches(_whole_json(body, reader, pace), leave_out)
    return _checked_batches(_yaml(bytes(body), forms, pace, leave_out), leave_out)


def _in_utf8(body: _Body) -> _Body | bytes:
    """Return the text of a file in UTF-8, without the byte order mark that says how it is encoded.

    Windows PowerShell writes what kubectl prints in UTF-16. Raises ManifestError.
    """
    if body[: len(BOM_UTF8)] == BOM_UTF8:
        return body[len(BOM_UTF8) :]
    if body[: len(BOM_UTF16_LE)] not in {BOM_UTF16_LE, BOM_UTF16_BE}:
        return body
    try:
        return bytes(body).decode("utf-16").encode()
    except UnicodeDecodeError as error:
        raise ManifestError(f"not UTF-16: {error.reason}") from error


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
            content = bytes(body)
            # What is not even an object is nothing to leave out: the file would seem to hold no objects.
            decode_json(content, dict[str, msgspec.Raw])
            found = reader.read(content, ListHead())
        yield [found] if found else []
        return
    listed = JsonList(body, msgspec.Raw)
    prefix = listed.prefix
    for part in listed.batches(pace):
        yield [found for content in part if (found := reader.read(content, prefix)) is not None]


class _ObjectReader:
    """Decodes objects in JSON.

    In a list, most objects have the same kind as the previous one; such an object is decoded in a single pass.
    """

    def __init__(self, forms: ObjectForms, leave_out: LeaveOut | None) -> None:
        self._forms = forms
        self._leave_out = leave_out
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
        self._expected = (kind, decoder_of(form)) if form and states_kind(form) else None
        try:
            return _whole(content, manifest, form)
        except ManifestError as error:
            if self._leave_out is None:
                raise
            self._leave_out(UnreadableObject(manifest, content, str(error)))
            return None

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
    """Return the readable part of an object that is not what it should be."""
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
        manifest = convert(content, Manifest)
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
