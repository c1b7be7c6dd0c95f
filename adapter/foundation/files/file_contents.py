"""Contents of files that may be replaced at any time, and of folders that hold such files.

Only regular files up to a size limit are read, since a FIFO or a device would block or never end.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

LARGEST_BYTES = 16 << 20
"""Size limit of one file. A ConfigMap has at most one MiB."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """One file as it was read."""

    path: Path
    text: str
    unread: UnreadFileError | None = None
    """Why the file could not be read and has no text. A missing folder counts as such a file."""


class FilesError(Exception):
    """Files cannot be read; the message names the file and the reason."""


class UnreadFileError(FilesError):
    """One file, or a folder, cannot be read."""

    def __init__(self, path: Path, reason: str, fix: str) -> None:
        super().__init__(f"{path}: {reason}: {fix}")
        self.path = path
        self.reason = reason
        self.fix = fix


@contextmanager
def opened_regular(path: Path, largest_bytes: int = sys.maxsize) -> Iterator[BinaryIO]:
    """Open a regular file, or a link to one, without blocking; raises OSError, also for other kinds of files."""

    def opener(name: str, flags: int) -> int:
        return _opened_if_regular(name, flags, largest_bytes)

    with open(path, "rb", opener=opener) as stream:
        yield stream


def require_regular(paths: Iterable[Path]) -> None:
    """Raise OSError unless each is a readable regular file, for libraries that open files themselves and may block."""
    for path in paths:
        with opened_regular(path):
            pass


def is_folder(path: Path) -> bool:
    """Return whether the path is that of a folder.

    False also if the path may not be examined; reading it then raises that error. `Path.is_dir` itself raises the error
    of a path without permission, or of a name that is too long.
    """
    return os.path.isdir(path)  # noqa: PTH112 - see above


def read_regular(path: Path, largest_bytes: int = LARGEST_BYTES) -> bytes:
    """Return the bytes of a regular file; raises OSError, also for files that are not regular or too large."""
    with opened_regular(path, largest_bytes) as stream:
        # The buffer gets the requested size, so only a file that grows meanwhile is read up to the limit.
        size = min(largest_bytes, os.fstat(stream.fileno()).st_size)
        data = stream.read(size + 1)
        if len(data) > size:
            data += stream.read(largest_bytes + 1 - len(data))
    if len(data) > largest_bytes:
        raise _too_large(str(path), largest_bytes)
    return data


def first_bytes(path: Path, count: int) -> bytes:
    """Return the first `count` bytes, or fewer, of a regular file of any size; raises OSError."""
    with opened_regular(path) as stream:
        return stream.read(count)


@contextmanager
def mapped_regular(path: Path) -> Iterator[bytes | mmap.mmap]:
    """Map a regular file of any size into memory; raises OSError. An empty file gives empty bytes.

    If the file is truncated while it is mapped, reading it kills the process.
    """
    with opened_regular(path) as stream:
        if os.fstat(stream.fileno()).st_size == 0:
            yield b""
            return
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            mapped.madvise(mmap.MADV_SEQUENTIAL)
            yield mapped


def read_files(paths: Iterable[Path]) -> tuple[FileContent, ...]:
    """Return the contents of files and of the files in folders; raises FilesError for the first unreadable one."""
    contents = read_each(paths)
    for content in contents:
        if content.unread is not None:
            raise content.unread
    return contents


def read_each(paths: Iterable[Path]) -> tuple[FileContent, ...]:
    """Return the files' contents; a file that cannot be read has the reason instead.

    A folder stands for the `*.yaml` files in it, in the order of their names.
    """
    return tuple(content for path in paths for content in _contents_of(path))


def sole_content(path: Path, contents: Sequence[FileContent]) -> FileContent:
    """Return the content that `read_each` returned for one path; raises FilesError unless it is one readable file."""
    if len(contents) != 1:
        raise FilesError(f"{path}: the folder has {len(contents) or 'no'} *.yaml files: name the one to read")
    (content,) = contents
    if content.unread is not None:
        raise content.unread
    return content


def empty_folders(paths: Iterable[Path], contents: Iterable[FileContent]) -> tuple[Path, ...]:
    """Return the folders that contributed nothing to the contents that `read_each` returned for the paths."""
    found = {place for content in contents for place in (content.path, content.path.parent)}
    return tuple(path for path in paths if path not in found and is_folder(path))


def _contents_of(path: Path) -> Iterator[FileContent]:
    try:
        files = _files_of(path)
    except UnreadFileError as e:
        yield FileContent(path, "", e)
        return
    for file in files:
        try:
            yield _read(file)
        except UnreadFileError as e:
            yield FileContent(file, "", e)


def _files_of(path: Path) -> list[Path]:
    if not is_folder(path):
        return [path]
    try:
        # A mounted ConfigMap consists of hidden files and links to them.
        return sorted(file for file in path.iterdir() if file.suffix == ".yaml" and not file.name.startswith("."))
    except OSError as e:
        raise UnreadFileError(path, f"cannot list the folder: {e.strerror}", "check that it is readable") from e


def _read(path: Path) -> FileContent:
    try:
        return FileContent(path, read_regular(path).decode())
    except OSError as e:
        if e.errno == errno.EFBIG:
            raise UnreadFileError(path, str(e.strerror), "split it") from e
        if e.errno == errno.EINVAL:
            raise UnreadFileError(path, f"cannot read it: {e.strerror}", "save its content in a regular file") from e
        raise UnreadFileError(
            path, f"cannot read the file: {e.strerror}", "check that it exists and is readable"
        ) from e
    except UnicodeDecodeError as e:
        raise UnreadFileError(path, f"byte {e.start} is not UTF-8", "save the file as UTF-8") from e


def _opened_if_regular(path: str, flags: int, largest_bytes: int) -> int:
    """Open a regular file of at most `largest_bytes` without blocking; raises OSError for any other file."""
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as e:
        if e.errno != errno.ENXIO:  # the error of a socket, or of a missing device
            raise
    else:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_size <= largest_bytes:
            return descriptor
        os.close(descriptor)
        if stat.S_ISREG(found.st_mode):
            raise _too_large(path, largest_bytes)
    raise OSError(errno.EINVAL, "it is not a regular file", path)


def _too_large(path: str, largest_bytes: int) -> OSError:
    limit = f"{largest_bytes >> 20} MiB" if largest_bytes >= 1 << 20 else f"{largest_bytes >> 10} KiB"
    return OSError(errno.EFBIG, f"the file is larger than {limit}", path)
