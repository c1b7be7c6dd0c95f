"""Values loaded from files: reloaded when the files change, and kept if the new content is unusable.

Files are polled instead of watched with inotify, because a ConfigMap is mounted as links that a rename two folders up
retargets, and network file systems send no events. Polling a few small files costs some microseconds per second.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
import time
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from adapter.foundation.files.file_contents import FileContent, read_each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

C = TypeVar("C")
T = TypeVar("T")

Look: TypeAlias = "Callable[[], tuple[object, C]]"
"""Returns the state of the files, to be compared for equality, and their content. Raises if they cannot be used."""
Stamp: TypeAlias = "tuple[int, int, int] | None"
"""Modification time in nanoseconds, inode and size of a file; None if the file does not exist."""

_NO_SPACING = 0.0
_LOAD_AGAIN_SECONDS = 1.0


class FollowedFiles(Generic[C, T]):
    """The last good value of some files. Call `check` from one thread only; `current` is thread-safe."""

    def __init__(  # noqa: PLR0913 - each has a default, and a name
        self,
        look: Look[C],
        load: Callable[[C], T],
        *,
        unusable: tuple[type[Exception], ...],
        on_success: Callable[[T], None] = lambda _: None,
        on_failure: Callable[[Exception], None] = lambda _: None,
        settled_after: int = 1,
        loads_refused_again: bool = False,
        look_every_seconds: float = _NO_SPACING,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load once. Raises the errors of `look` and `load`, since there is no last good value at the start.

        `unusable` are the errors that mean that the files cannot be used; any other error is a bug in `load` and passes
        through. `on_success` is called with each further value; if it raises, the change is loaded again at the next
        look. `on_failure` is called with the error of an unusable change, once for each change.

        A change is loaded when `settled_after` consecutive looks saw the same state. If it is more than 1, files that
        are still being written, or only partly replaced, are left alone.

        With `loads_refused_again`, an unusable change is loaded again, at most once a second, since the state does not
        show every cause, such as permissions. `on_failure` is then called once for each message.

        `look_every_seconds` is the shortest time between two looks of `current`, by `clock`.
        """
        self._look = look
        self._load = load
        self._unusable = unusable
        self._on_success = on_success
        self._on_failure = on_failure
        self._settled_after = settled_after
        self._loads_refused_again = loads_refused_again
        self._refusal: str | None = None
        """Message of the last reported error; None once a change has been loaded."""
        self._refused_state: object = None
        self._load_again_at = -math.inf
        self._look_every_seconds = look_every_seconds
        self._clock = clock
        self._looking = threading.Lock()
        self._next_look = clock() + look_every_seconds
        # The state is taken before the files are loaded, so that the next look sees a change in between.
        self._seen, content = look()
        self._coming, self._looks = self._seen, 0
        self._value = load(content)

    @property
    def value(self) -> T:
        """The value that was last loaded without an error."""
        return self._value

    def current(self) -> T:
        """Return the value; look for changes first if the last look is old enough and no other thread is looking."""
        if self._clock() >= self._next_look and self._looking.acquire(blocking=False):
            try:
                self._next_look = self._clock() + self._look_every_seconds
                self.check()
            finally:
                self._looking.release()
        return self._value

    def check(self) -> None:
        """Check the files once, and load them if they have changed. A periodic task calls this function."""
        try:
            seen, content = self._look()
        except self._unusable as e:
            seen = f"cannot be used: {e}"
            if self._is_settled_change(seen):
                self._refuse(e, seen)
            return
        if not self._is_settled_change(seen):
            return
        if seen == self._refused_state and self._clock() < self._load_again_at:
            return
        try:
            value = self._load(content)
        except self._unusable as e:
            self._refuse(e, seen)
            return
        self._on_success(value)
        self._value, self._seen, self._refusal, self._refused_state = value, seen, None, None

    def _is_settled_change(self, seen: object) -> bool:
        """Return whether this state must be loaded: it is new or follows a refusal, and has lasted long enough."""
        self._looks = self._looks + 1 if seen == self._coming else 1
        self._coming = seen
        # After a refusal, the state in use is loaded again when it returns, which ends the refusal.
        is_change = seen != self._seen or self._refusal is not None
        return is_change and self._looks >= self._settled_after

    def _refuse(self, error: Exception, seen: object) -> None:
        if self._loads_refused_again:
            self._refused_state, self._load_again_at = seen, self._clock() + _LOAD_AGAIN_SECONDS
            if str(error) == self._refusal:
                return
            self._refusal = str(error)
        else:
            self._seen = seen
        self._on_failure(error)


def by_content(paths: Sequence[Path]) -> Look[tuple[FileContent, ...]]:
    """Return a look that reads all files, and the files in folders (`read_each`), each time.

    It misses no change, not even one within the resolution of the file system's clock. For a file that
    cannot be read, the contents have the reason; if no file can be read, the look raises FilesError.
    """
    paths = tuple(paths)

    def look() -> tuple[str, tuple[FileContent, ...]]:
        contents = read_each(paths)
        errors = [content.unread for content in contents if content.unread is not None]
        if errors and len(errors) == len(contents):
            raise errors[0]
        return _digest(contents), contents

    return look


def first_of(contents: tuple[FileContent, ...], look: Look[tuple[FileContent, ...]]) -> Look[tuple[FileContent, ...]]:
    """Return a look that finds these contents the first time, and from then on what the given look finds."""
    before = [contents]

    def look_again() -> tuple[object, tuple[FileContent, ...]]:
        if not before:
            return look()
        found = before.pop()
        return _digest(found), found

    return look_again


def by_stamp(paths: Sequence[Path]) -> Look[None]:
    """Return a look that reads only the modification time, inode and size of files: cheap enough for every request."""
    paths = tuple(paths)
    return lambda: (stamps_of(paths), None)


def stamps_of(paths: Iterable[Path]) -> tuple[Stamp, ...]:
    """Return the stamps of the files, to be compared; follows links, because a mounted Secret consists of links."""
    return tuple(map(_stamp_of, paths))


def _stamp_of(path: Path) -> Stamp:
    try:
        found = os.stat(path)  # noqa: PTH116 - for every connection: Path.stat costs twice as much
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _digest(contents: Iterable[FileContent]) -> str:
    digest = hashlib.sha256()
    for content in contents:
        for part in (str(content.path), content.text, str(content.unread or "")):
            encoded = part.encode(errors="surrogateescape")
            digest.update(f"{len(encoded)} ".encode() + encoded)
    return digest.hexdigest()
