"""Files that are looked at every second, of which the last good content stays in use.

Polling, not inotify: a ConfigMap is mounted as links whose target is swapped by a rename two folders up, network file
systems send no events, and a few small files cost some microseconds a second. A file is always read, since a change
within the resolution of its time would otherwise be lost.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from adapter.documents.tree import DocumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

T = TypeVar("T")

_LARGEST_BYTES = 16 << 20
"""A ConfigMap has at most one MiB."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """One file as it was read."""

    path: Path
    text: str
    unread: UnreadFileError | None = None
    """Why it could not be read; it has no text then. A folder that is gone is one such file."""


class FilesError(Exception):
    """Files cannot be read; the message names the file and the reason."""


class UnreadFileError(FilesError):
    """One file, or a folder, cannot be read."""

    def __init__(self, path: Path, reason: str, fix: str) -> None:
        super().__init__(f"{path}: {reason}: {fix}")
        self.path = path
        self.reason = reason
        self.fix = fix


EXPECTED = (FilesError, DocumentError, ValueError)
"""What loaders raise for content that cannot be used; anything else is a fault of the loader."""


class WatchedFiles(Generic[T]):
    """The newest good value of some files; folders stand for the `*.yaml` in them, in the order of their names."""

    def __init__(
        self,
        paths: Sequence[Path],
        load: Callable[[Sequence[FileContent]], T],
        *,
        settled_after: int = 1,
        on_success: Callable[[T], None] = lambda _: None,
        on_failure: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Load once; raises what `load` raises, or FilesError: at the start there is no last good value.

        `load` also gets the files that cannot be read, unless none can.

        A change is taken in when so many looks in a row saw the same. With more than one, files that somebody is still
        writing, or of which one is new and another not yet, are left alone.
        """
        self._paths = tuple(paths)
        self._load = load
        self._on_success = on_success
        self._on_failure = on_failure
        contents = _read_what_can_be(self._paths)
        self._seen = _digest(contents)
        self._settled_after = settled_after
        self._coming, self._looks = self._seen, 0
        self._value = load(contents)

    @property
    def value(self) -> T:
        """What was loaded last without an error."""
        return self._value

    def check(self) -> None:
        """Look once, and load what has changed; the body of a periodic task.

        Where `on_success` raises, the change has not been taken in: it is tried again with the next look.
        """
        try:
            contents = _read_what_can_be(self._paths)
        except FilesError as e:
            seen = f"unreadable: {e}"
            if self._is_settled_change(seen):
                self._fail(str(e), seen)
            return
        seen = _digest(contents)
        if not self._is_settled_change(seen):
            return
        try:
            value = self._load(contents)
        except EXPECTED as e:
            self._fail(str(e), seen)
            return
        self._on_success(value)
        self._value, self._seen = value, seen

    def _is_settled_change(self, seen: str) -> bool:
        """Return whether this is another content than the last that was loaded or refused, and has stood for a time."""
        self._looks = self._looks + 1 if seen == self._coming else 1
        self._coming = seen
        return seen != self._seen and self._looks >= self._settled_after

    def _fail(self, message: str, seen: str) -> None:
        self._seen = seen
        self._on_failure(message)


def read_files(paths: Iterable[Path]) -> tuple[FileContent, ...]:
    """Return the files' contents, those of folders included; raises FilesError for the first that cannot be read."""
    contents = read_each(paths)
    for content in contents:
        if content.unread is not None:
            raise content.unread
    return contents


def read_each(paths: Iterable[Path]) -> tuple[FileContent, ...]:
    """Return the files' contents, those of folders included, and why which of them cannot be read."""
    return tuple(content for path in paths for content in _contents_of(path))


def empty_folders(paths: Iterable[Path], contents: Iterable[FileContent]) -> tuple[Path, ...]:
    """Return the folders of which nothing is among the contents that `read_each` returned of the paths."""
    found = {place for content in contents for place in (content.path, content.path.parent)}
    return tuple(path for path in paths if path not in found and path.is_dir())


def _read_what_can_be(paths: Iterable[Path]) -> tuple[FileContent, ...]:
    """Return what `read_each` does; raises FilesError where no file can be read and there are some."""
    contents = read_each(paths)
    errors = [content.unread for content in contents if content.unread is not None]
    if errors and len(errors) == len(contents):
        raise errors[0]
    return contents


def _contents_of(path: Path) -> Iterator[FileContent]:
    try:
        files = _files_of(path)
    except UnreadFileError as e:
        yield FileContent(path, "", e)
        return
    for file in files:
        try:
            _refuse_huge(file)
            yield _read(file)
        except UnreadFileError as e:
            yield FileContent(file, "", e)


def _refuse_huge(path: Path) -> None:
    """Raise UnreadFileError for a file that no ConfigMap could hold: it would be read anew every second."""
    try:
        size = path.stat().st_size
    except OSError:
        # Reading it will tell why.
        return
    if size > _LARGEST_BYTES:
        raise UnreadFileError(path, f"the file is larger than {_LARGEST_BYTES >> 20} MiB", "split it")


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    try:
        # Hidden names are the parts of which a mounted ConfigMap is made.
        return sorted(file for file in path.iterdir() if file.suffix == ".yaml" and not file.name.startswith("."))
    except OSError as e:
        raise UnreadFileError(path, f"cannot list the folder: {e.strerror}", "check that it may be read") from e


def _read(path: Path) -> FileContent:
    try:
        with open(path, "rb", opener=_opened_if_regular) as stream:
            return FileContent(path, stream.read().decode())
    except OSError as e:
        raise UnreadFileError(
            path, f"cannot read the file: {e.strerror}", "check that it exists and may be read"
        ) from e
    except UnicodeDecodeError as e:
        raise UnreadFileError(path, f"byte {e.start} is not UTF-8", "save the file as UTF-8") from e


def _opened_if_regular(path: str, flags: int) -> int:
    """Open a file without waiting; raises OSError for what is none, such as a FIFO, which would be read for ever."""
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as e:
        if e.errno != errno.ENXIO:  # a socket's, or a device's that is not there
            raise
    else:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file")


def _digest(contents: Iterable[FileContent]) -> str:
    digest = hashlib.sha256()
    for content in contents:
        for part in (str(content.path), content.text, str(content.unread or "")):
            encoded = part.encode(errors="surrogateescape")
            digest.update(f"{len(encoded)} ".encode() + encoded)
    return digest.hexdigest()
