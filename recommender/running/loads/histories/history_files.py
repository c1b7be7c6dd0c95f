"""Histories of loads in files, so that a restart asks Prometheus only for missing parts.

A file consists of one line of JSON, the samples as float32 (little-endian) target by target, and a digest of both. It
is replaced as a whole. A file that is damaged, of another version or of another query is ignored.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import msgspec
import numpy as np

from adapter.foundation.files.credential_files import reason_of
from adapter.foundation.files.digests import DIGEST_BYTES, has_right_digest, with_digest
from adapter.foundation.files.file_contents import opened_regular
from adapter.foundation.files.replaced_file import replacing
from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.service.runtime.logs import StateLog, fields
from recommender.decisions.record import TargetReference
from recommender.kinds.predictive.predictive_settings import LONGEST_HISTORY_SECONDS
from recommender.running.memory.store_protocol import stored_name
from recommender.running.memory.unused_files import DAY_SECONDS, UnusedFiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from recommender.running.loads.histories.load_histories import TargetHistory

_log = logging.getLogger(__name__)

VERSION: Final = 2
_Step: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
_Steps: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
_Number: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**52), le=2**52)]
_LONGEST_LINE: Final = 16 << 20
_ROWS_AT_ONCE: Final = 64
_SAMPLE: Final = np.dtype("<f4")


class LoadFileError(Exception):
    """A file cannot be used; the message says why."""


class _Version(msgspec.Struct):
    version: int


class _Head(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The first line of a file."""

    version: int
    load: str
    """A digest of the load that the samples belong to."""
    step_seconds: _Step
    first: _Number
    steps: _Steps
    asked: list[tuple[_Number, _Number]]
    """Spans of grid times that have been requested: the first and the last of each."""
    targets: list[tuple[str, str, str, str] | None]


_VERSION = decoder_of(_Version)
_HEAD = decoder_of(_Head)


class LoadFiles:
    """Stores histories in the files of a folder. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unused = UnusedFiles(folder, LONGEST_HISTORY_SECONDS + DAY_SECONDS)
        self._states = StateLog(_log)

    def restore(self, history: TargetHistory) -> bool:
        """Fill a history from its file; return whether there was a usable one."""
        path = self._path(history.need.name)
        try:
            with opened_regular(path) as file:
                head = _checked_head(file, history)
                _restore(file, head, history)
        except FileNotFoundError:
            return False
        except (OSError, LoadFileError) as error:
            about = fields(recommendation=history.need.name, file=str(path), problem=reason_of(error))
            _log.warning("a stored history of a load is not used: it is downloaded again", extra=about)
            return False
        return True

    def save(self, history: TargetHistory) -> bool:
        """Write the file of a history; return whether it was written. A failure is logged once."""
        path = self._path(history.need.name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.writelines(with_digest(_pieces(history)))
        except OSError as error:
            message = f"the histories of loads cannot be written to {self._folder}: {error.strerror}"
            self._states.failed("write", f"{message}: a restart downloads them again", level=logging.WARNING)
            return False
        self._unused.drop(path)
        self._states.recovered("write", "the histories of loads are written again")
        return True

    def remove(self, name: str) -> None:
        """Delete the file of a recommendation that will not come back. A failure only wastes space."""
        with suppress(OSError):
            self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{stored_name(name)}.load"


def _pieces(history: TargetHistory) -> Iterator[bytes]:
    """Yield the content of a file, except its digest."""
    first, asked = history.requested_times()
    targets = history.targets()
    head = {
        "version": VERSION,
        "load": _identity_of(history),
        "step_seconds": history.step_seconds,
        "first": first,
        "steps": len(asked),
        "asked": _spans(asked, first),
        "targets": [
            None if target is None else [target.api_version, target.kind, target.namespace, target.name]
            for target in targets
        ],
    }
    yield json.dumps(head).encode() + b"\n"
    for start in range(0, len(targets), _ROWS_AT_ONCE):
        rows = history.rows(targets[start : start + _ROWS_AT_ONCE], first, first + len(asked) - 1)
        yield rows.astype(_SAMPLE, copy=False).tobytes()


def _spans(asked: np.ndarray[Any, np.dtype[np.bool_]], first: int) -> list[list[int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], asked, [False]]).astype(np.int8)))
    return [[first + int(a), first + int(b) - 1] for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _checked_head(file: BinaryIO, history: TargetHistory) -> _Head:
    """Return the first line of a file; the position in the file is then after that line.

    Raises LoadFileError if the file is damaged, or does not fit the history.
    """
    size = os.fstat(file.fileno()).st_size
    if not has_right_digest(file, size):
        raise LoadFileError("it is damaged: its digest does not match")
    file.seek(0)
    line = file.readline(_LONGEST_LINE)
    try:
        version = _VERSION.decode(line).version
        if version != VERSION:
            raise LoadFileError(f"it has version {version}, and this program reads {VERSION}")
        head = _HEAD.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise LoadFileError(f"its first line is not one of this program: {error}") from error
    if head.load != _identity_of(history):
        raise LoadFileError("it belongs to another query, forEach or Prometheus")
    factor = history.step_seconds / head.step_seconds
    if abs(factor - round(factor)) > 1e-9 or factor < 1 or head.steps < 1:
        raise LoadFileError(f"its step is {head.step_seconds:g} s, and {history.step_seconds:g} s are needed")
    if size != file.tell() + len(head.targets) * head.steps * _SAMPLE.itemsize + DIGEST_BYTES:
        raise LoadFileError("its size differs from what its first line states")
    return head


def _restore(file: BinaryIO, head: _Head, history: TargetHistory) -> None:
    """Restore those grid times of a file that are also grid times of the history, whose step may be coarser."""
    factor = round(history.step_seconds / head.step_seconds)
    skipped = -head.first % factor
    asked = np.zeros(head.steps, dtype=np.bool_)
    for start, end in head.asked:
        asked[max(0, start - head.first) : max(0, end - head.first + 1)] = True
    first = (head.first + skipped) // factor
    if len(asked[skipped::factor]):
        history.restore(first, asked[skipped::factor])
    targets = [None if item is None else TargetReference(*item) for item in head.targets]
    for start in range(0, len(targets), _ROWS_AT_ONCE):
        some = targets[start : start + _ROWS_AT_ONCE]
        rows = np.frombuffer(file.read(len(some) * head.steps * _SAMPLE.itemsize), dtype=_SAMPLE)
        values = rows.reshape(len(some), head.steps)[:, skipped::factor]
        if values.shape[1]:
            history.restore_rows(first, some, values.astype(np.float32, copy=False))


def _identity_of(history: TargetHistory) -> str:
    """Return a digest of what determines the meaning of samples; equal queries may concern other targets or data."""
    need = history.need
    each = need.settings.for_each
    labels = None if each is None else (each.kind, each.namespace_label, each.name_label)
    return hashlib.blake2b(repr((need.source, need.query, labels)).encode(), digest_size=16).hexdigest()
