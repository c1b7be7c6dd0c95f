"""Files that are replaced atomically: a reader sees the old or the new content, never a part of either."""

from __future__ import annotations

import os
import re
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TOKEN_BYTES: Final = 4
_READABLE_CHARACTERS: Final = 60
"""Number of characters of the file's name that its temporary name repeats: at most 240 of the 255 bytes allowed."""
_LEFT_BEHIND_AFTER_SECONDS: Final = 3600.0
"""Age from which a temporary file counts as left over from a process that was killed."""


def replace_file(path: Path, content: bytes, *, mode: int | None = 0o666, durable: bool = True) -> None:
    """Replace the content of a file as a whole; see `replacing`."""
    with replacing(path, mode=mode, durable=durable) as stream:
        stream.write(content)


@contextmanager
def replacing(path: Path, *, mode: int | None = 0o666, durable: bool = True) -> Iterator[BinaryIO]:
    """Yield a new file for writing, which takes the place of `path` when the block ends without an error.

    - The folder must exist and be readable. Raises OSError; the old file is then unchanged, unless the error is that
      the folder could not be synchronized at the end.
    - With `durable`, the new content survives a loss of power once the block has ended.
    - `mode` is the permissions of the new file, less the umask. None keeps the permissions of the old file, and its
      owner and group as far as this process may set them.
    - The new file is written under an unpredictable name that must not exist yet, so no planted link is followed.
      A link at `path` itself is replaced; to write to the target of the link, resolve the path first.
    - Several threads or processes may replace the same file; the last one wins.
    - No temporary file is left after an error. If the process is killed during the block, a later replacement of
      the same file removes the leftover once it is an hour old.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _remove_left_behind(folder, path.name)
        temporary = f"{_prefix(path.name)}{os.urandom(_TOKEN_BYTES).hex()}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600 if mode is None else mode, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                yield stream
                stream.flush()
                if mode is None:
                    _keep_permissions(folder, path.name, descriptor)
                if durable:
                    os.fsync(descriptor)
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        if durable:
            os.fsync(folder)
    finally:
        os.close(folder)


def _prefix(name: str) -> str:
    return f".{name[:_READABLE_CHARACTERS]}."


def _keep_permissions(folder: int, name: str, descriptor: int) -> None:
    """Give the new file the owner, group and mode of the old one."""
    try:
        old = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    # One by one, since a process may belong to the group without having the right to give the file to another user.
    for owner, group in ((old.st_uid, -1), (-1, old.st_gid)):
        with suppress(PermissionError):
            os.fchown(descriptor, owner, group)
    # Without the bits for setuid and setgid, since the owner may be another one now.
    os.fchmod(descriptor, old.st_mode & 0o777)


def _remove_left_behind(folder: int, name: str) -> None:
    left = re.compile(rf"{re.escape(_prefix(name))}[0-9a-f]{{{2 * _TOKEN_BYTES}}}\.new")
    oldest = time.time() - _LEFT_BEHIND_AFTER_SECONDS
    for other in os.listdir(folder):
        if left.fullmatch(other):
            with suppress(OSError):
                if os.stat(other, dir_fd=folder, follow_symlinks=False).st_mtime < oldest:
                    os.unlink(other, dir_fd=folder)
