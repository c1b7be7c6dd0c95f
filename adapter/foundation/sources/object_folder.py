"""Names and labels of objects from a folder: for demonstrations, for tests, and for use without Kubernetes.

Every `*.json` and `*.yaml` in the folder holds an object or a List. Replace a file by renaming another over it, so that
it is never read half-written. A file that cannot be read keeps its last good content and is reported once. The known
kinds are the built-in ones, and those that a CustomResourceDefinition in the folder defines.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from adapter.foundation.files.file_contents import opened_regular
from adapter.foundation.objects.metadata import ObjectMeta, PartialObjectMetadata
from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.foundation.sources.manifest_forms import GroupKind, ManifestError, defined_kind, group_kind
from adapter.foundation.sources.manifests import read_manifests
from adapter.foundation.sources.object_index import ObjectIndex
from adapter.foundation.sources.objects import ObjectsError, ObjectsNotServedError, ObjectsNotSyncedError
from adapter.foundation.time.pace import UNPACED, Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from adapter.foundation.objects.selectors import Selector

_SUFFIXES = frozenset({".json", ".yaml"})
_ENTRIES_A_SLICE = 100
_LARGEST_BYTES = 512 << 20
"""Limit of a file's size; 50,000 whole pods in JSON have half of that."""
_REASONS: Final[dict[int | None, str]] = {
    errno.EINVAL: "not a regular file: put one here, or remove it",
    errno.EFBIG: f"the file is larger than {_LARGEST_BYTES >> 20} MiB: split it",
}
"""The messages about files that `opened_regular` refuses, by the code of the error."""


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A problem of one file. `str()` is `FILE:LINE: reason`."""

    file: Path
    line: int | None
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}" if self.line else f"{self.file}: {self.reason}"


class _Entry(NamedTuple):
    namespace: str | None
    name: str
    labels: dict[str, str]


_Signature: TypeAlias = tuple[int, int, int, int]
"""Inode, size, and the times of the last write and change of a file."""


@dataclass(frozen=True, slots=True)
class _File:
    """The last good content of a file, and what the last check found."""

    seen: _Signature | None = None
    """Signature of the file at the last check; None if the file could not be opened then."""
    entries: Mapping[GroupKind, list[_Entry]] = field(default_factory=dict)
    defined: tuple[Resource, ...] = ()
    """Kinds that CustomResourceDefinitions in the file define."""
    problem: FileProblem | None = None


class FileObjects:
    """An `ObjectSource` for a folder. One thread calls `refresh`; the other methods are thread-safe."""

    def __init__(
        self, directory: str | Path, pace: Pace = UNPACED, report: Callable[[FileProblem], None] | None = None
    ) -> None:
        """Raise ObjectsError if the folder cannot be listed. No file is read before the first `refresh`.

        `report` is called once for each problem, when it first appears.
        """
        self._directory = Path(directory)
        self._pace = pace
        self._report = report or _ignore
        self._files: dict[Path, _File] = {}
        self._reported: frozenset[FileProblem] = frozenset()
        self._resources: tuple[Resource, ...] = BUILT_IN
        self._indexes: dict[Resource, ObjectIndex] | None = None
        _paths(self._directory)

    def resource(self, group: str, name: str) -> Resource:
        """Return the resource of this name, as a `ResolveResource` does. Raises UnknownResourceError."""
        return find_resource(self._resources, group, name)

    def names(self, resource: Resource, namespace: str | None, selector: Selector) -> tuple[str, ...]:
        """Return the names of the objects in the namespace (None: cluster-scoped) whose labels match, in order.

        Raises ObjectsError before the first `refresh`, and for an unknown kind.
        """
        return self._index(resource).names(namespace, selector)

    def labels_of(self, resource: Resource, namespace: str | None, name: str) -> Mapping[str, str] | None:
        """Return the labels of one object; None if there is no such object. Raises ObjectsError as `names` does."""
        return self._index(resource).labels(namespace, name)

    def namespaces_of(self, resource: Resource) -> tuple[str, ...]:
        """Return the namespaces with objects of the kind. Raises ObjectsError as `names` does."""
        return self._index(resource).namespaces()

    def is_synced(self, resource: Resource) -> bool:
        """Return whether the folder has been read and the kind is known. Never raises."""
        return self._indexes is not None and resource in self._indexes

    def await_first_list(self, resource: Resource, seconds: float) -> None:
        """Do nothing, since the objects of files are available at once."""

    def unreadable(self, resource: Resource, namespace: str | None) -> int:  # noqa: ARG002 - see ObjectSource
        """Return 0: a file is read as a whole, or its last good content stays in use."""
        return 0

    def refresh(self) -> None:
        """Read new and changed files of the folder, and forget deleted ones. Never raises because of a file.

        The objects of each kind are replaced in one step. Raises ObjectsError if the folder cannot be listed; all
        objects are then kept.
        """
        looked_at = {path: self._look(path, self._files.get(path)) for path in _paths(self._directory)}
        files = {path: file for path, file in looked_at.items() if file is not None}
        before = self._files
        changed = files.keys() != before.keys() or any(file is not before[path] for path, file in files.items())
        if changed or self._indexes is None:
            self._files = files
            self._rebuild(before)

    def _index(self, resource: Resource) -> ObjectIndex:
        if self._indexes is None:
            raise ObjectsNotSyncedError(f"{resource.qualified}: the files in {self._directory} have not been read yet")
        index = self._indexes.get(resource)
        if index is None:
            raise ObjectsNotServedError(
                f"{resource.qualified}: it is neither built in nor defined in {self._directory}"
            )
        return index

    def _look(self, path: Path, known: _File | None) -> _File | None:
        """Return the current state of the file; None if it was deleted."""
        known, seen = known or _File(), None
        try:
            with opened_regular(path, _LARGEST_BYTES) as stream:
                seen = _signature(os.fstat(stream.fileno()))
                if known.seen == seen:
                    return known
                body = stream.read()
            return self._read(path, body, seen)
        except FileNotFoundError:
            return None
        except OSError as error:
            seen, problem = None, FileProblem(path, None, _REASONS.get(error.errno, f"{error.strerror}"))
        except ManifestError as error:
            problem = FileProblem(path, error.line, str(error))
        if seen is None and problem == known.problem:
            return known
        self._report(problem)
        return replace(known, seen=seen, problem=problem)

    def _read(self, path: Path, body: bytes, seen: _Signature) -> _File:
        """Read the whole content of a file. Raises ManifestError."""
        if not body or body.isspace():
            raise ManifestError(
                "the file is empty: remove it if it is to hold nothing, write `items: []` if it is a List"
            )
        entries: dict[GroupKind, list[_Entry]] = {}
        defined: list[Resource] = []
        shared: dict[tuple[str, ...], dict[str, str]] = {}
        for part in read_manifests(body, is_json=path.suffix == ".json", pace=self._pace):
            for manifest in part:
                labels = manifest.metadata.labels or {}
                labels = shared.setdefault((*labels, *labels.values()), labels)
                entry = _Entry(manifest.metadata.namespace, manifest.metadata.name, labels)
                entries.setdefault(group_kind(manifest), []).append(entry)
                if resource := defined_kind(manifest):
                    defined.append(resource)
        return _File(seen, entries, tuple(defined))

    def _rebuild(self, before: Mapping[Path, _File]) -> None:
        """Update the indexes of all kinds from the files."""
        resources = tuple(dict.fromkeys(chain(BUILT_IN, *(file.defined for file in self._files.values()))))
        known = {GroupKind(resource.group, resource.kind): resource for resource in reversed(resources)}
        changed = _changed_kinds(before, self._files)
        old = self._indexes or {}
        indexes: dict[Resource, ObjectIndex] = {}
        problems: list[FileProblem] = []
        for kind, resource in known.items():
            index = indexes[resource] = old.get(resource) or ObjectIndex()
            if kind in changed or resource not in old:
                problems += self._fill(index, kind, resource)
        self._resources = resources
        self._indexes = indexes
        problems.extend(self._unknown(known))
        self._report_new(problems)

    def _fill(self, index: ObjectIndex, kind: GroupKind, resource: Resource) -> list[FileProblem]:
        """Replace the objects of one kind; return the problems of objects that are defined twice."""
        replacement = index.replacement()
        told = 0
        for path in sorted(self._files):
            for part in self._pace.slices(self._files[path].entries.get(kind, ()), _ENTRIES_A_SLICE):
                told += len(part)
                for entry in part:
                    replacement.put(PartialObjectMetadata(ObjectMeta(entry.name, _home(resource, entry), entry.labels)))
        replacement.commit()
        return list(self._twice(kind, resource)) if told > len(index) else []

    def _twice(self, kind: GroupKind, resource: Resource) -> Iterator[FileProblem]:
        owners: dict[tuple[str | None, str], Path] = {}
        for path in sorted(self._files):
            for entry in self._files[path].entries.get(kind, ()):
                home = _home(resource, entry)
                earlier = owners.get((home, entry.name))
                owners[home, entry.name] = path
                if earlier is not None:
                    called = f"{home}/{entry.name}" if home else entry.name
                    reason = f"{kind.kind} {called} is also in {earlier.name}: the last definition is used"
                    yield FileProblem(path, None, reason)

    def _unknown(self, known: Mapping[GroupKind, Resource]) -> Iterator[FileProblem]:
        for path in sorted(self._files):
            for kind, entries in self._files[path].entries.items():
                if kind not in known:
                    group = kind.group or "the core group"
                    reason = (
                        f"objects of kind {kind.kind} in {group} are left out ({len(entries)}): the kind is not known"
                    )
                    yield FileProblem(path, None, f"{reason}, add its CustomResourceDefinition to the folder")

    def _report_new(self, problems: Iterable[FileProblem]) -> None:
        now = dict.fromkeys(problems)
        for problem in now:
            if problem not in self._reported:
                self._report(problem)
        self._reported = frozenset(now)


def _ignore(_problem: FileProblem) -> None:
    return


def _paths(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.suffix in _SUFFIXES)
    except OSError as error:
        message = f"objects from {directory}: {error.strerror}: name a folder with *.json and *.yaml files"
        raise ObjectsError(message) from error


def _signature(status: os.stat_result) -> _Signature:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _home(resource: Resource, entry: _Entry) -> str | None:
    """Return the namespace of the object; `default`, as with kubectl, if the object states none."""
    return (entry.namespace or "default") if resource.namespaced else None


def _changed_kinds(before: Mapping[Path, _File], now: Mapping[Path, _File]) -> set[GroupKind]:
    """Return the kinds of objects in files that were added, removed or changed."""
    nothing = _File()
    pairs = ((before.get(path, nothing), now.get(path, nothing)) for path in before.keys() | now.keys())
    return {kind for old, new in pairs if old.entries is not new.entries for kind in chain(old.entries, new.entries)}
