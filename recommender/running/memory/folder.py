"""Memories as files in a folder, for a recommender without a cluster.

A file is written beside the old one, synchronized with the disk, and renamed: whatever happens, the old or the new
content is there as a whole.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from adapter.service.runtime.logs import StateLog, fields
from recommender.running.memory.document import MemoryDocumentError, decode_memory, encode_memory
from recommender.running.memory.store import MemoryUnavailableError, stored_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from recommender.decisions.memory import Memory

_log = logging.getLogger(__name__)


class FolderMemoryStore:
    """A `MemoryStore` of files. It has one writer: the folder belongs to this process."""

    def __init__(self, folder: Path, count: Callable[[str], None] = lambda _result: None) -> None:
        """`count` is called with `ok` or `error` after each write."""
        self._folder = folder
        self._count = count
        self._states = StateLog(_log)
        self._lock = threading.Lock()
        self._stored: dict[str, str] = {}

    def load(self, name: str) -> Memory | None:
        """Return what is stored; a file that cannot be used is renamed to `….broken`."""
        path = self._path(name)
        with self._lock:
            try:
                text = path.read_bytes().decode()
                memory = decode_memory(name, text)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise MemoryUnavailableError(f"{path} cannot be read: {error.strerror}") from error
            except (UnicodeDecodeError, MemoryDocumentError) as error:
                self._move_aside(path, str(error))
                return None
            self._stored[name] = text
            return memory

    def save(self, name: str, memory: Memory, *, urgent: bool) -> bool:  # noqa: ARG002 - a file is always written at once
        """Write the file if its content changes; returns whether it holds the memory now."""
        text = encode_memory(name, memory)
        with self._lock:
            if self._stored.get(name) == text:
                return True
            try:
                write_atomically(self._path(name), text.encode())
            except OSError as error:
                self._count("error")
                message = f"memories cannot be written to {self._folder}: {error.strerror}: scale calls wait"
                self._states.failed("write", message)
                return False
            self._stored[name] = text
            self._count("ok")
            self._states.recovered("write", "memories are written again")
            return True

    def needs_load(self, name: str) -> bool:  # noqa: ARG002 - nobody else writes
        """Return False."""
        return False

    def _path(self, name: str) -> Path:
        return self._folder / f"{stored_name(name)}.json"

    @staticmethod
    def _move_aside(path: Path, problem: str) -> None:
        aside = path.with_name(f"{path.name}.broken")
        with suppress(OSError):
            path.replace(aside)
        _log.error(
            "a stored memory cannot be used: the recommendation starts without cool-downs and holds",
            extra=fields(file=str(path), problem=problem, moved_to=str(aside)),
        )


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the content of a file as a whole; its folder is created if it is missing. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
