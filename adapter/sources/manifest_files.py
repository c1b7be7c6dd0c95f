"""The files of objects: which files of a folder they are, their content, and what shows that a file has changed."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from adapter.sources.manifests import ManifestError
from adapter.sources.objects import ObjectsError

if TYPE_CHECKING:
    from pathlib import Path

_SUFFIXES = frozenset({".json", ".yaml"})
_LARGEST_BYTES = 512 << 20
"""50,000 whole pods in JSON have half of that."""


@dataclass(frozen=True, slots=True)
class FileProblem:
    """What is wrong with one file. `str()` is `FILE:LINE: reason`."""

    file: Path
    line: int | None
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}" if self.line else f"{self.file}: {self.reason}"


class FileSignature(NamedTuple):
    """Values that change when a file is replaced or written, or when its permissions change."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int


def manifest_paths(directory: Path) -> list[Path]:
    """Return the `*.json` and `*.yaml` of a folder in the order of their names. Raises ObjectsError."""
    try:
        return sorted(path for path in directory.iterdir() if path.suffix in _SUFFIXES)
    except OSError as error:
        message = f"objects from {directory}: {error.strerror}: name a folder with *.json and *.yaml files"
        raise ObjectsError(message) from error


def opened(path: Path) -> BinaryIO:
    """Open a regular file; opening a named pipe would wait for another process to write to it.

    Raises OSError and ManifestError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ManifestError("not a regular file: put one here, or remove it")
    return os.fdopen(descriptor, "rb")


def content_of(stream: BinaryIO, size: int) -> bytes:
    """Return the content of an open file of this size. Raises ManifestError if it is empty or too large."""
    if size > _LARGEST_BYTES:
        raise ManifestError(f"the file is larger than {_LARGEST_BYTES >> 20} MiB: split it")
    body = stream.read()
    if not body or body.isspace():
        raise ManifestError("the file is empty: remove it if it is to hold nothing, write `items: []` if it is a List")
    return body


def signature_of(status: os.stat_result) -> FileSignature:
    """Return the signature of a file with this status."""
    return FileSignature(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
