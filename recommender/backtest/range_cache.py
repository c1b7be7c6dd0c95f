"""Answers to range queries on disk, so that a second backtest asks Prometheus only for what it lacks.

Each file holds the values of adjacent steps, and none of it is needed: a file that cannot be read is asked for again.
"""

from __future__ import annotations

import logging
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zipfile import BadZipFile

import numpy as np

if TYPE_CHECKING:
    from adapter.sources.prometheus.settings import PrometheusSettings
    from recommender.predictive.arrays import FloatArray

_log = logging.getLogger(__name__)

_FORMAT: Final = "1"


@dataclass(frozen=True, slots=True)
class CachedSteps:
    """Values of adjacent steps."""

    first: int
    """The number of the first step since the Unix epoch."""
    values: FloatArray
    """NaN where Prometheus has none."""

    @property
    def end(self) -> int:
        """Return the number of the step after the last one."""
        return self.first + len(self.values)


@dataclass(frozen=True, slots=True)
class RangeCache:
    """One query at one step, in a folder."""

    folder: Path
    key: str

    @classmethod
    def of(cls, folder: Path, settings: PrometheusSettings, query: str, step_seconds: int) -> RangeCache:
        """Return the cache of a query. Another server, tenant or user has another one; secrets are only hashed."""
        parts = (_FORMAT, settings.url, settings.headers, settings.username, settings.token_file, query, step_seconds)
        return cls(folder, sha256(repr(parts).encode()).hexdigest()[:32])

    def read(self, chunk: int) -> CachedSteps | None:
        """Return what is known of a chunk; None if nothing is."""
        try:
            # numpy leaves a file open that is no archive.
            with self._path(chunk).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                found = CachedSteps(int(file["first"]), np.asarray(file["values"], dtype=np.float64))
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile):
            return None
        return found if found.values.ndim == 1 else None

    def write(self, chunk: int, steps: CachedSteps) -> None:
        """Keep what is known of a chunk; a disk that is full or read-only costs the cache only."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    np.savez_compressed(file, first=np.int64(steps.first), values=steps.values)
                Path(name).replace(self._path(chunk))
            finally:
                with suppress(FileNotFoundError):
                    Path(name).unlink()
        except OSError as error:
            _log.warning("the answers of Prometheus are not cached in %s: %s", self.folder, error)

    def _path(self, chunk: int) -> Path:
        return self.folder / f"{self.key}-{chunk}.npz"
