"""Memories as files in a folder, for a recommender without a cluster.

Each file is replaced as a whole, so that it always has either the old or the new content.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from adapter.foundation.files.file_contents import read_regular
from adapter.foundation.files.replaced_file import replace_file
from adapter.foundation.service.runtime.logs import StateLog, fields
from recommender.running.memory.memory_document import (
    MemoryDocumentError,
    decode_memory,
    decode_shard,
    encode_memory,
    encode_shard,
)
from recommender.running.memory.store_protocol import MemoryKey, MemoryUnavailableError, StoredMemory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from recommender.decisions.memory import Memory

_log = logging.getLogger(__name__)

_LARGEST_BYTES = 256 << 20
"""The size of the largest file that is read: many times the size of the memories of 10,000 targets."""


class FolderMemoryStore:
    """A `MemoryStore` of files. No other process may write to the folder."""

    def __init__(self, folder: Path, count: Callable[[str], None] = lambda _result: None) -> None:
        """`count` is called with `ok` or `error` after each write."""
        self._folder = folder
        self._count = count
        self._states = StateLog(_log)
        self._lock = threading.Lock()
        self._stored: dict[MemoryKey, bytes] = {}
        self._unwritten: set[MemoryKey] = set()
        """Memories whose last write failed."""

    def load(self, name: str, shard: int | None = None) -> StoredMemory | None:
        """Return the stored memory; an unusable file is renamed to `….broken`."""
        key = MemoryKey(name, shard)
        path = self._path(key)
        with self._lock:
            try:
                content = read_regular(path, _LARGEST_BYTES)
                found = decode_memory(name, content) if shard is None else decode_shard(name, content)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise MemoryUnavailableError(f"{path} cannot be read: {error.strerror}: repair or remove it") from error
            except MemoryDocumentError as error:
                self._move_aside(path, str(error))
                return None
            self._stored[key] = content
            return found

    def save(self, name: str, memory: Memory, shard: int | None = None, shards: int = 0, *, urgent: bool) -> bool:  # noqa: ARG002 - a file is always written at once
        """Write the file if its content changes; return whether it contains the memory now.

        A file has no limit, so no shard is too large.
        """
        key = MemoryKey(name, shard)
        content = encode_memory(name, memory).encode() if shard is None else encode_shard(name, memory, shards)
        with self._lock:
            self._unwritten.discard(key)
            if self._stored.get(key) == content:
                return True
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                replace_file(self._path(key), content)
            except OSError as error:
                self._count("error")
                message = f"memories cannot be written to {self._folder}: {error.strerror}: scale calls wait"
                self._states.failed("write", message)
                self._unwritten.add(key)
                return False
            self._stored[key] = content
            self._count("ok")
            self._states.recovered("write", "memories are written again")
            return True

    def needs_load(self, name: str, shard: int | None = None) -> bool:  # noqa: ARG002 - nobody else writes
        """Return False: no other process changes a memory."""
        return False

    def forget(self, name: str, shard: int | None = None) -> bool:
        """Drop what this process knows of the file, unless its last write failed and is still to be repeated."""
        key = MemoryKey(name, shard)
        with self._lock:
            if key in self._unwritten:
                return False
            self._stored.pop(key, None)
        return True

    def _path(self, key: MemoryKey) -> Path:
        return self._folder / f"{key.object_name}{'.json' if key.shard is None else '.json.gz'}"

    @staticmethod
    def _move_aside(path: Path, problem: str) -> None:
        aside = path.with_name(f"{path.name}.broken")
        with suppress(OSError):
            path.replace(aside)
        _log.error(
            "a stored memory cannot be used: the recommendation or target starts without cool-downs and holds",
            extra=fields(file=str(path), problem=problem, moved_to=str(aside)),
        )
