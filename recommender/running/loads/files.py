"""Histories of loads in files, so that a restart asks Prometheus only for what it lacks.

A file is one line of JSON, the samples as float32 (little-endian) target by target, and a digest of all of it. It is
written beside the old one and renamed. A file that is damaged, of another version or of another query is ignored.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from adapter.service.runtime.logs import StateLog, fields
from recommender.decisions.record import TargetReference
from recommender.running.memory.store import stored_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from recommender.running.loads.histories import TargetHistory
    from recommender.running.loads.reading import Target

_log = logging.getLogger(__name__)

VERSION: Final = 1
_DIGEST_BYTES: Final = 32
_LONGEST_LINE: Final = 16 << 20
_PIECE_BYTES: Final = 1 << 20
_ROWS_AT_ONCE: Final = 64
_SAMPLE: Final = np.dtype("<f4")


class LoadFileError(Exception):
    """A file cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class _Head:
    """The first line of a file."""

    query: str
    step_seconds: float
    first: int
    steps: int
    asked: list[list[int]]
    """Spans of grid times that have been asked for: the first and the last."""
    targets: list[list[str] | None]
    version: int = VERSION


class LoadFiles:
    """The histories under a folder. For one thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._states = StateLog(_log)

    def restore(self, history: TargetHistory) -> bool:
        """Fill a history from its file; returns whether there was one that could be used."""
        path = self._path(history.need.name)
        try:
            with path.open("rb") as file:
                head = _checked_head(file, history)
                _restore(file, head, history)
        except FileNotFoundError:
            return False
        except (OSError, LoadFileError) as error:
            problem = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            about = fields(recommendation=history.need.name, file=str(path), problem=problem)
            _log.warning("a stored history of a load is not used: it is downloaded again", extra=about)
            return False
        return True

    def save(self, history: TargetHistory) -> bool:
        """Write the file of a history; returns whether it is written. A failure is logged once."""
        path = self._path(history.need.name)
        temporary = path.with_name(f".{path.name}.new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                _write(file, history)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            message = f"the histories of loads cannot be written to {self._folder}: {error.strerror}"
            self._states.failed("write", f"{message}: a restart downloads them again", level=logging.WARNING)
            return False
        self._states.recovered("write", "the histories of loads are written again")
        return True

    def _path(self, name: str) -> Path:
        return self._folder / f"{stored_name(name)}.load"


def _write(file: BinaryIO, history: TargetHistory) -> None:
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)

    def put(content: bytes) -> None:
        digest.update(content)
        file.write(content)

    first, asked = history.asked()
    targets = history.targets()
    head = {
        "version": VERSION,
        "query": history.need.query,
        "step_seconds": history.step_seconds,
        "first": first,
        "steps": len(asked),
        "asked": _spans(asked, first),
        "targets": [
            None if target is None else [target.api_version, target.kind, target.namespace, target.name]
            for target in targets
        ],
    }
    put(json.dumps(head).encode() + b"\n")
    for start in range(0, len(targets), _ROWS_AT_ONCE):
        rows = history.rows(targets[start : start + _ROWS_AT_ONCE], first, first + len(asked) - 1)
        put(rows.astype(_SAMPLE, copy=False).tobytes())
    file.write(digest.digest())


def _spans(asked: np.ndarray[Any, np.dtype[np.bool_]], first: int) -> list[list[int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], asked, [False]]).astype(np.int8)))
    return [[first + int(a), first + int(b) - 1] for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _checked_head(file: BinaryIO, history: TargetHistory) -> _Head:
    """Return the first line of a file whose digest is right; the file then stands behind it. Raises LoadFileError."""
    size = os.fstat(file.fileno()).st_size
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for piece in _pieces(file, size - _DIGEST_BYTES):
        digest.update(piece)
    if file.read(_DIGEST_BYTES) != digest.digest():
        raise LoadFileError("it is damaged: its digest is another one")
    file.seek(0)
    try:
        head = _Head(**json.loads(file.readline(_LONGEST_LINE)))
    except (ValueError, TypeError) as error:
        raise LoadFileError("its first line is of another version") from error
    if head.version != VERSION:
        raise LoadFileError(f"it has version {head.version}, and this program reads {VERSION}")
    if head.query != history.need.query:
        raise LoadFileError("it is of another query")
    factor = history.step_seconds / head.step_seconds
    if abs(factor - round(factor)) > 1e-9 or factor < 1 or head.steps < 1:
        raise LoadFileError(f"its step is {head.step_seconds:g} s, and {history.step_seconds:g} s are needed")
    if size != file.tell() + len(head.targets) * head.steps * _SAMPLE.itemsize + _DIGEST_BYTES:
        raise LoadFileError("its size is another than its first line states")
    return head


def _restore(file: BinaryIO, head: _Head, history: TargetHistory) -> None:
    """Take every `factor`-th grid time, which are those of the history."""
    factor = round(history.step_seconds / head.step_seconds)
    skipped = -head.first % factor
    asked = np.zeros(head.steps, dtype=np.bool_)
    for start, end in head.asked:
        asked[start - head.first : end - head.first + 1] = True
    first = (head.first + skipped) // factor
    if len(asked[skipped::factor]):
        history.restore(first, asked[skipped::factor])
    targets = [_target(item) for item in head.targets]
    for start in range(0, len(targets), _ROWS_AT_ONCE):
        some = targets[start : start + _ROWS_AT_ONCE]
        rows = np.frombuffer(file.read(len(some) * head.steps * _SAMPLE.itemsize), dtype=_SAMPLE)
        values = rows.reshape(len(some), head.steps)[:, skipped::factor]
        if values.shape[1]:
            history.restore_rows(first, some, values.astype(np.float32, copy=False))


def _target(item: list[str] | None) -> Target:
    return None if item is None else TargetReference(*item)


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    while size > 0 and (piece := file.read(min(size, _PIECE_BYTES))):
        size -= len(piece)
        yield piece
