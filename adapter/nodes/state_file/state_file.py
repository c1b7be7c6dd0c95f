"""Reads a state file at the start, and writes the newest samples to it when a task calls `write_if_due`.

The file is replaced as a whole. If anything is wrong with the file or its folder, the program logs one line and goes on
without the file.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from adapter.foundation.files.digests import has_right_digest
from adapter.foundation.files.replaced_file import replacing
from adapter.foundation.service.runtime.logs import StateLog, fields
from adapter.foundation.time.clock import Clock
from adapter.nodes.state_file.sample_encoding import SampleFileError, decode_samples, encode_samples, newest_time
from adapter.nodes.state_file.week_encoding import decode_week, encode_week

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from adapter.nodes.model.samples import SampleSet
    from adapter.nodes.model.week import LoadWeek

_log = logging.getLogger(__name__)

WRITE_EVERY_SECONDS: Final = 30.0
LARGEST_BYTES: Final = 1 << 30
"""A larger file is not read: 5,000 nodes with five resources take 8 MB."""
MOST_AHEAD_SECONDS: Final = 60.0
"""How far the newest sample may be ahead of the clock."""


Content = TypeVar("Content")


@dataclass(frozen=True, slots=True)
class Codec(Generic[Content]):
    """How a file holds its content."""

    encoded: Callable[[Content, str], Iterable[bytes]]
    """Returns the pieces of a file with this content and meaning."""
    decoded: Callable[[bytes, str], Content]
    """Returns the content of a file, which must have the given meaning. Raises SampleFileError."""
    latest: Callable[[Content], float]
    """Returns the time of the newest sample, in Unix seconds."""


SAMPLES: Final = Codec(encode_samples, decode_samples, newest_time)
WEEK: Final = Codec(encode_week, decode_week, lambda week: float(week.end))


class StateFile(Generic[Content]):
    """A state file. Any thread may call `offer`; `read` is for use before the first `write_if_due`."""

    def __init__(
        self,
        path: Path,
        meaning: str,
        codec: Codec[Content],
        clock: Clock | None = None,
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        """`meaning` identifies the samples (queries, Prometheus); a file with another meaning is not used.

        `failed` is called after each write that fails.
        """
        self._path = path
        self._meaning = meaning
        self._codec = codec
        self._clock = clock or Clock()
        self._failed = failed
        self._states = StateLog(_log)
        self._lock = threading.Lock()
        self._offered: Content | None = None
        self._tried_at = float("-inf")

    def read(self) -> Content | None:
        """Return the content of the file; None if there is no file that can be used.

        A file that cannot be used is renamed to `NAME.unused`, so that the next write does not destroy it.
        """
        try:
            samples = self._codec.decoded(_content(self._path), self._meaning)
            _check_time(self._codec.latest(samples), self._clock.wall())
        except FileNotFoundError:
            return None
        except IsADirectoryError:
            self._unusable("it is a directory: name a file", moved_to=None)
        except (OSError, SampleFileError) as error:
            problem = f"{error.strerror}: check its owner and mode" if isinstance(error, OSError) else str(error)
            self._unusable(problem, moved_to=self._moved_aside())
        else:
            return samples
        return None

    def offer(self, samples: Content) -> None:
        """Take the newest samples, to be written later. Never waits for the disk."""
        with self._lock:
            self._offered = samples

    def write_if_due(self) -> bool:
        """Write the newest samples if there are any and the last attempt is 30 s ago; return whether it wrote them."""
        now = self._clock.monotonic()
        if now - self._tried_at < WRITE_EVERY_SECONDS:
            return False
        with self._lock:
            samples, self._offered = self._offered, None
        if samples is None:
            return False
        self._tried_at = now
        try:
            with replacing(self._path, mode=0o600) as out:
                out.writelines(self._codec.encoded(samples, self._meaning))
        except OSError as error:
            with self._lock:
                if self._offered is None:
                    self._offered = samples
            message = f"samples of nodes cannot be written to {self._path}: {_repair(error)}"
            self._states.failed("write", message, level=logging.WARNING)
            self._failed()
            return False
        self._states.recovered("write", f"samples of nodes are written to {self._path} again")
        return True

    def _unusable(self, problem: str, moved_to: Path | None) -> None:
        further = {} if moved_to is None else {"moved_to": str(moved_to)}
        _log.warning(
            "the state file of node samples is not used: the samples are downloaded again",
            extra=fields(file=str(self._path), problem=problem, **further),
        )

    def _moved_aside(self) -> Path | None:
        aside = self._path.with_name(f"{self._path.name}.unused")
        with suppress(OSError):
            self._path.replace(aside)
            return aside
        return None


SampleFile: TypeAlias = StateFile["SampleSet"]
WeekFile: TypeAlias = StateFile["LoadWeek"]


def _content(path: Path) -> bytes:
    """Return the content of a regular file that only its owner and group may write. Raises OSError, SampleFileError."""
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(found.st_mode):
            raise SampleFileError("it is not a regular file")
        if found.st_uid not in {0, os.geteuid()}:
            raise SampleFileError(f"it belongs to user {found.st_uid}, and this program runs as {os.geteuid()}")
        if found.st_mode & stat.S_IWOTH:
            raise SampleFileError(f"any user can write it (mode {stat.S_IMODE(found.st_mode):o}): use mode 600")
        if found.st_size > LARGEST_BYTES:
            raise SampleFileError(f"it has {found.st_size} bytes, and at most {LARGEST_BYTES} are read")
        # Anything else at the path is not read into memory as a whole.
        if not has_right_digest(file, found.st_size):
            raise SampleFileError(f"it is damaged or cut off: the digest of its {found.st_size} bytes does not match")
        file.seek(0)
        return file.read(found.st_size)


def _check_time(newest: float, now: float) -> None:
    """Raise SampleFileError for samples from the future, which would count as new for too long."""
    ahead = newest - now
    if ahead > MOST_AHEAD_SECONDS:
        raise SampleFileError(f"its newest sample is {ahead:.0f} s ahead of this machine's clock")


def _repair(error: OSError) -> str:
    """Return what is wrong and what to do."""
    hints = {
        errno.ENOSPC: "free some space; the old file is kept",
        errno.EDQUOT: "free some space; the old file is kept",
        errno.ENOENT: "create the folder, or name a file in one that exists",
        errno.ENOTDIR: "name a file in a folder that exists",
        errno.EISDIR: "name a file",
        errno.EACCES: "let this program write the folder",
        errno.EPERM: "let this program write the folder",
        errno.EROFS: "mount a volume that can be written",
    }
    hint = hints.get(error.errno or 0, "a restart downloads the samples again")
    return f"{error.strerror}: {hint}"
