"""The files of a recording: events are appended, a new file begins each day, and the oldest ones are dropped.

A process that is killed leaves at most one incomplete line at the end of its file, and the reader skips it. The next
process begins a new file with everything that exists then.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PREFIX: Final = "recording-"
SUFFIX: Final = ".jsonl"
MOST_BYTES: Final = 128 * 2**20
"""Limit of all files together: with it, they and the history of loads fit into the chart's `stateSizeLimit`."""
_PARTS: Final = 8
"""A file whose changes exceed the limit divided by this is ended early, so that old files can be dropped."""
_FILE_SECONDS: Final = 86_400.0


class EventLog:
    """Appends to the files in a folder. Every method may raise OSError, which ends the file."""

    def __init__(self, folder: Path, keep_seconds: float, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._keep_seconds = keep_seconds
        self._most_bytes = most_bytes
        self._stream: BinaryIO | None = None
        self._unused: Path | None = None
        """The path of the new file while the file is empty."""
        self._began = 0.0
        self._size = 0
        self._beginning = 0
        """The part of the size that is about the objects that existed when the file began; it may be large."""
        self._older: deque[tuple[Path, int]] = deque()
        """The other files with their sizes; those that make room first come first."""

    def is_due(self, time: float) -> bool:
        """Return whether a new file should begin.

        There is none, or the current one is a day old, too large, deleted or truncated. On a full disk, people delete
        and truncate files. The room of an open one that was deleted is free only once it is closed.
        """
        return (
            self._stream is None
            or not (found := os.fstat(self._stream.fileno())).st_nlink
            or found.st_size < self._size
            or not 0 <= time - self._began < _FILE_SECONDS
            or self._size - self._beginning > self._most_bytes // _PARTS
        )

    def begin(self, time: float) -> None:
        """Begin a file, and drop the files that are no longer needed."""
        self.close()
        self._folder.mkdir(parents=True, exist_ok=True)
        self.drop_old(time)
        path = self._folder / f"{PREFIX}{int(time * 1000):015d}{SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        # A file of the same time goes on, and must not make room for itself.
        self._older = deque(older for older in self._older if older[0] != path)
        self._stream = os.fdopen(os.open(path, flags, 0o640), "ab")
        self._began, self._size, self._beginning, self._unused = time, 0, 0, path

    def append(self, lines: Iterable[bytes]) -> None:
        """Append whole lines, which survive the end of this process and, after this call, a loss of power.

        The first lines of a file are about all objects that exist. If they cannot be written, the file is deleted, so
        that a full disk does not gather empty files.
        """
        stream = self._stream
        assert stream is not None, "a file has been begun"
        try:
            for line in lines:
                stream.write(line)
                self._size += len(line)
            stream.flush()
            os.fdatasync(stream.fileno())
        except OSError:
            try:
                self.close()
            finally:
                if self._unused is not None:
                    self._unused.unlink(missing_ok=True)
            raise
        if self._unused is not None:
            self._unused, self._beginning = None, self._size
        self._make_room(self._size)

    def close(self) -> None:
        """End the file."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def drop_old(self, time: float) -> None:
        """Delete files that ended before the kept time, and the oldest files while the total is too large.

        If even the newest file began before the kept time, the clock may be wrong, so files count as too old only once
        the next file begins at such a time too. Files from the future come from a wrong clock, unless the current clock
        is wrong: they are the first to make room, and count as too old once the whole kept time has been recorded.
        """
        files, ahead = files_until(self._folder, time)
        oldest = time - self._keep_seconds
        if files and began(files[-1]) < oldest:
            oldest = 0.0
        is_ahead_old = bool(files) and began(files[0]) < oldest
        ends = [*((file, -math.inf if is_ahead_old else time) for file in ahead)]
        ends += zip(files, [*map(began, files[1:]), time], strict=False)
        self._older.clear()
        for file, end in ends:
            if end < oldest:
                file.unlink(missing_ok=True)
            else:
                self._older.append((file, file.stat().st_size))
        self._make_room(self._most_bytes // _PARTS)

    def _make_room(self, size: int) -> None:
        """Delete the oldest files until a file of this size fits into the limit."""
        total = size + sum(each for _, each in self._older)
        while self._older and total > self._most_bytes:
            file, freed = self._older.popleft()
            file.unlink(missing_ok=True)
            total -= freed


def files_of(folder: Path) -> list[Path]:
    """Return the files of a recording, the oldest first."""
    return sorted(file for file in folder.glob(f"{PREFIX}*{SUFFIX}") if file.stem[len(PREFIX) :].isdecimal())


def files_until(folder: Path, time: float) -> tuple[list[Path], list[Path]]:
    """Return the files of a recording that began by a time, and those that did later, unless all did; a day is allowed.

    Both are sorted by time, the oldest first.
    """
    files = files_of(folder)
    place = bisect_right(files, time + _FILE_SECONDS, key=began) or len(files)
    return files[:place], files[place:]


def began(file: Path) -> float:
    """Return the time at which a file began, from its name."""
    return int(file.stem[len(PREFIX) :]) / 1000
