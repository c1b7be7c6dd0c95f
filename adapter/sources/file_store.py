"""Whole objects from a file or folder, where there is no cluster, or for a command that runs once.

`read_object_files` reads once; `FileStore` follows the files. An object that cannot be read is left out and is among
the problems. A file that cannot be read at all keeps its last good objects; at the start it has none.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from adapter.objects.selectors import EVERYTHING
from adapter.sources.manifest_files import FileProblem, content_of, manifest_paths, opened, signature_of
from adapter.sources.manifests import ManifestError
from adapter.sources.objects import ObjectsError
from adapter.sources.stores import KubernetesObject
from adapter.sources.whole_objects import read_whole_objects
from adapter.timing.followed_files import FollowedFiles
from adapter.timing.pace import UNPACED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from adapter.objects.selectors import Selector
    from adapter.sources.manifest_files import FileSignature
    from adapter.sources.whole_objects import ObjectForms, WholeObject
    from adapter.timing.pace import Pace

T = TypeVar("T", bound=KubernetesObject)

LOOKS_UNTIL_SETTLED = 2
"""Looks in a row that must see the same files: a file that is being written may already be valid YAML."""


@dataclass(frozen=True, slots=True)
class _File:
    """The last good objects of a file, and what is wrong with its present content."""

    signature: FileSignature | None = None
    objects: tuple[WholeObject, ...] = ()
    problems: tuple[FileProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class ObjectFiles:
    """The objects of all files at one moment."""

    problems: tuple[FileProblem, ...] = ()
    """Files and objects that cannot be read, and objects that several files define."""
    _found: Mapping[type[KubernetesObject], tuple[WholeObject, ...]] = field(default_factory=dict, repr=False)
    """The objects of each kind by its Struct, in the order of namespace and name."""
    _files: Mapping[Path, _File] = field(default_factory=dict, repr=False)

    def objects(self, form: type[T], namespace: str | None = None, selector: Selector = EVERYTHING) -> tuple[T, ...]:
        """Return the objects of the kind that has this Struct, in the order of namespace and name.

        Without a namespace, the objects of all namespaces are returned. `selector` selects by labels.
        """
        return tuple(
            found.content
            for found in self._found.get(form, ())
            if isinstance(found.content, form)
            and namespace in (None, found.content.metadata.namespace)
            and selector.matches(found.labels)
        )


def read_object_files(
    place: Path, forms: ObjectForms, pace: Pace = UNPACED, former: ObjectFiles | None = None
) -> ObjectFiles:
    """Read the objects of these kinds from a file, or from the `*.json` and `*.yaml` of a folder.

    Files that have not changed since `former` are not read again, and of a file that has become unreadable the former
    objects are kept. Raises ObjectsError only if there is no such file or folder.
    """
    known = former._files if former else {}  # noqa: SLF001 - of the same class
    files = {path: _read(path, known.get(path, _File()), forms, pace) for path in _paths(place)}
    latest: dict[tuple[type[KubernetesObject], str, str], tuple[Path, WholeObject]] = {}
    problems = [problem for file in files.values() for problem in file.problems]
    for path, file in files.items():
        for found in file.objects:
            metadata = found.content.metadata
            key = (type(found.content), metadata.namespace or "", metadata.name)
            if key in latest:
                problems.append(_defined_twice(path, found, latest[key][0]))
            latest[key] = path, found
    of_kinds: dict[type[KubernetesObject], list[WholeObject]] = {}
    for key in sorted(latest, key=lambda key: key[1:]):
        of_kinds.setdefault(key[0], []).append(latest[key][1])
    return ObjectFiles(tuple(problems), {form: tuple(found) for form, found in of_kinds.items()}, files)


class FileStore:
    """Follows the objects of a file or folder. One thread calls `check` every second; `current` is for any thread."""

    def __init__(
        self,
        place: Path,
        forms: ObjectForms,
        pace: Pace = UNPACED,
        report: Callable[[FileProblem], None] = lambda _: None,
    ) -> None:
        """Read the files. Raises ObjectsError if there is no such file or folder.

        `forms` names the kinds to read and the Struct of each. `report` is called once for each problem when it
        appears.
        """
        self._report = report
        self._reported: frozenset[FileProblem] = frozenset()
        self._former: ObjectFiles | None = None

        def load(_: None) -> ObjectFiles:
            self._former = read_object_files(place, forms, pace, self._former)
            return self._former

        self._followed = FollowedFiles(
            lambda: (_signatures(place), None),
            load,
            unusable=(ObjectsError,),
            settled_after=LOOKS_UNTIL_SETTLED,
            on_success=self._report_new,
            on_failure=lambda error: report(FileProblem(place, None, f"the last objects stay in use: {error}")),
        )
        self._report_new(self._followed.value)

    @property
    def current(self) -> ObjectFiles:
        """The objects as they were last read."""
        return self._followed.value

    def check(self) -> None:
        """Look at the files once, and read those that changed. Raises for no file and no object."""
        self._followed.check()

    def _report_new(self, files: ObjectFiles) -> None:
        for problem in dict.fromkeys(files.problems):
            if problem not in self._reported:
                self._report(problem)
        self._reported = frozenset(files.problems)


def _paths(place: Path) -> list[Path]:
    return [place] if place.is_file() else manifest_paths(place)


def _signatures(place: Path) -> tuple[tuple[Path, FileSignature | None], ...]:
    return tuple((path, _signature(path)) for path in _paths(place))


def _signature(path: Path) -> FileSignature | None:
    try:
        return signature_of(path.stat())
    except OSError:
        return None


def _read(path: Path, known: _File, forms: ObjectForms, pace: Pace) -> _File:
    signature: FileSignature | None = None
    try:
        with opened(path) as stream:
            signature = signature_of(os.fstat(stream.fileno()))
            if signature == known.signature:
                return known
            body = content_of(stream, signature.size)
        found = list(read_whole_objects(body, forms, is_json=path.suffix == ".json", pace=pace))
    except OSError as error:
        return replace(known, signature=None, problems=(FileProblem(path, None, f"{error.strerror}"),))
    except ManifestError as error:
        return replace(known, signature=signature, problems=(FileProblem(path, error.line, str(error)),))
    problems = tuple(FileProblem(path, each.line, str(each)) for each in found if isinstance(each, ManifestError))
    return _File(signature, tuple(each for each in found if not isinstance(each, ManifestError)), problems)


def _defined_twice(path: Path, found: WholeObject, earlier: Path) -> FileProblem:
    metadata = found.content.metadata
    called = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
    reason = f"{found.resource.kind} {called} is also in {earlier.name}: the last definition counts"
    return FileProblem(path, found.line, reason)
