"""Deletes files of recommendations that were removed while no process ran, so that they do not fill the disk.

Nothing shows with certainty that a recommendation will not come back: its object may be unknown only because the API
server is away. So a file stays until it is too old to be used.
"""

from __future__ import annotations

import math
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from recommender.running.memory.store_protocol import NAME_PREFIX

if TYPE_CHECKING:
    from pathlib import Path

DAY_SECONDS: Final = 86_400.0


class UnusedFiles:
    """The files of a folder that are no longer used. Not thread-safe."""

    def __init__(self, folder: Path, kept_seconds: float) -> None:
        """`kept_seconds` is the age from which a file cannot be used by any recommendation."""
        self._folder = folder
        self._kept_seconds = kept_seconds
        self._looked = -math.inf

    def drop(self, written: Path) -> None:
        """Delete files that are too old, once a day. `written` has just been written; a failure only wastes space."""
        with suppress(OSError):
            now = written.stat().st_mtime
            if 0 <= now - self._looked < DAY_SECONDS:
                return
            self._looked = now
            for file in self._folder.iterdir():
                found = file.lstat()
                is_ours = file.name.removeprefix(".").startswith(NAME_PREFIX) and stat.S_ISREG(found.st_mode)
                if is_ours and now - found.st_mtime > self._kept_seconds:
                    file.unlink(missing_ok=True)
