"""Objects from a folder instead of a cluster: for demonstrations, tests, and adapters outside of Kubernetes.

Every `*.json` and `*.yaml` in the folder is an object or a List. A file is replaced by renaming another over it, so it
is never seen half written; one that cannot be read all the same keeps its last good content and is reported once. The
built-in kinds are known, and those that a CustomResourceDefinition in the folder defines.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from adapter.objects.metadata import ObjectMeta, PartialObjectMetadata
from adapter.objects.resources import BUILT_IN, Resource, find_resource
from adapter.sources.index import ObjectIndex
from adapter.sources.manifest_files import FileProblem, content_of, manifest_paths, opened, signature_of
from adapter.sources.manifests import GroupKind, ManifestError, defined_kind, group_kind, read_manifests
from adapter.sources.objects import ObjectsNotServedError, ObjectsNotSyncedError
from adapter.timing.pace import UNPACED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from adapter.objects.selectors import Selector
    from adapter.sources.manifest_files import FileSignature
    from adapter.timing.pace import Pace

_ENTRIES_A_SLICE = 100


class _Entry(NamedTuple):
    namespace: str | None
    name: str
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class _File:
    """The last good content of a file, and the last look at it."""

    seen: FileSignature | None = None
    """None after a look that could not even open it."""
    entries: Mapping[GroupKind, list[_Entry]] = field(default_factory=dict)
    defined: tuple[Resource, ...] = ()
    """The kinds that CustomResourceDefinitions in it define."""
    problem: FileProblem | None = None


class FileObjects:
    """An `ObjectSource` over a folder. One thread calls `refresh`; any number asks."""

    def __init__(
        self, directory: str | Path, pace: Pace = UNPACED, report: Callable[[FileProblem], None] | None = None
    ) -> None:
        """Raise ObjectsError when the folder cannot be listed. Nothing is read before the first `refresh`.

        `report` is called for each problem, once for each change that brings it.
        """
        self._directory = Path(directory)
        self._pace = pace
        self._report = report or _ignore
        self._files: dict[Path, _File] = {}
        self._told: frozenset[FileProblem] = frozenset()
        self._resources: tuple[Resource, ...] = BUILT_IN
        self._indexes: dict[Resource, ObjectIndex] | None = None
        manifest_paths(self._directory)

    def resource(self, group: str, name: str) -> Resource:
        """Return the resource of this name; raises UnknownResourceError. Is a `ResolveResource`."""
        return find_resource(self._resources, group, name)

    def names(self, resource: Resource, namespace: str | None, selector: Selector) -> tuple[str, ...]:
        """Names of the objects in the namespace (None: root-scoped) whose labels match, in ascending order.

        Raises ObjectsError: before the first `refresh`, and for a kind that is not known here.
        """
        return self._index(resource).names(namespace, selector)

    def labels_of(self, resource: Resource, namespace: str | None, name: str) -> Mapping[str, str] | None:
        """Labels of one object; None if there is no such object. Raises ObjectsError likewise."""
        return self._index(resource).labels(namespace, name)

    def namespaces_of(self, resource: Resource) -> tuple[str, ...]:
        """Namespaces that hold an object of the kind. Raises ObjectsError likewise."""
        return self._index(resource).namespaces()

    def synced(self, resource: Resource) -> bool:
        """Whether the folder has been read and its objects of this kind stand (never raises)."""
        return self._indexes is not None and resource in self._indexes

    def await_first_list(self, resource: Resource, seconds: float) -> None:
        """Do nothing: what can be told is told at once."""

    def refresh(self) -> None:
        """Look at the folder once: read what is new or changed, forget what is gone. Raises for no file.

        For each kind the new objects stand at once. Raises ObjectsError when the folder cannot be listed; what is known
        stays then.
        """
        looked_at = {path: self._look(path, self._files.get(path)) for path in manifest_paths(self._directory)}
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
            raise ObjectsNotServedError(f"{resource.qualified}: neither built in nor defined in {self._directory}")
        return index

    def _look(self, path: Path, known: _File | None) -> _File | None:
        """Return the file as it is now; None when it is gone."""
        known, seen = known or _File(), None
        try:
            with opened(path) as stream:
                seen = signature_of(os.fstat(stream.fileno()))
                if known.seen == seen:
                    return known
                body = content_of(stream, seen.size)
            return self._read(path, body, seen)
        except FileNotFoundError:
            return None
        except OSError as error:
            seen, problem = None, FileProblem(path, None, f"{error.strerror}")
        except ManifestError as error:
            problem = FileProblem(path, error.line, str(error))
        if seen is None and problem == known.problem:
            return known
        self._report(problem)
        return replace(known, seen=seen, problem=problem)

    def _read(self, path: Path, body: bytes, seen: FileSignature) -> _File:
        """Read the whole content of a file. Raises ManifestError."""
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
        """Bring the indexes of all kinds up to what the files say now."""
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
        self._tell(problems)

    def _fill(self, index: ObjectIndex, kind: GroupKind, resource: Resource) -> list[FileProblem]:
        """Replace the objects of one kind; return where one is told twice. What the later file says counts."""
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
                    reason = f"{kind.kind} {called} is also in {earlier.name}: what this file says last counts"
                    yield FileProblem(path, None, reason)

    def _unknown(self, known: Mapping[GroupKind, Resource]) -> Iterator[FileProblem]:
        for path in sorted(self._files):
            for kind, entries in self._files[path].entries.items():
                if kind not in known:
                    group = kind.group or "the core group"
                    reason = (
                        f"{len(entries)} objects of kind {kind.kind} in {group} are left out: the kind is not known"
                    )
                    yield FileProblem(path, None, f"{reason}, add its CustomResourceDefinition to the folder")

    def _tell(self, problems: Iterable[FileProblem]) -> None:
        now = dict.fromkeys(problems)
        for problem in now:
            if problem not in self._told:
                self._report(problem)
        self._told = frozenset(now)


def _ignore(_problem: FileProblem) -> None:
    return


def _home(resource: Resource, entry: _Entry) -> str | None:
    """Return the namespace that the object lives in; as with kubectl, `default` when it does not say."""
    return (entry.namespace or "default") if resource.namespaced else None


def _changed_kinds(before: Mapping[Path, _File], now: Mapping[Path, _File]) -> set[GroupKind]:
    """Return the kinds of which a file came, went or was read anew."""
    nothing = _File()
    pairs = ((before.get(path, nothing), now.get(path, nothing)) for path in before.keys() | now.keys())
    return {kind for old, new in pairs if old.entries is not new.entries for kind in chain(old.entries, new.entries)}
