"""Answers to range queries on disk, so that a second backtest asks Prometheus only for what it lacks.

Each file holds a digest, the number of the first step and the values of adjacent ones. None of it is needed: what is in
a file that is damaged is asked for again.
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

import numpy as np

if TYPE_CHECKING:
    from adapter.sources.prometheus.settings import PrometheusSettings
    from recommender.predictive.arrays import FloatArray

_log = logging.getLogger(__name__)

_FORMAT: Final = "2"
_DIGEST_BYTES: Final = 32
_FIRST: Final = np.dtype("<i8")
_VALUE: Final = np.dtype("<f8")


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
            content = self._path(chunk).read_bytes()
        except OSError:
            return None
        digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if len(body) < _FIRST.itemsize or sha256(body).digest() != digest:
            return None
        (first,) = np.frombuffer(body, _FIRST, count=1)
        return CachedSteps(int(first), np.frombuffer(body, _VALUE, offset=_FIRST.itemsize).astype(np.float64))

    def write(self, chunk: int, steps: CachedSteps) -> None:
        """Keep what is known of a chunk; a disk that is full or read-only costs the cache only."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    body = np.array([steps.first], _FIRST).tobytes() + steps.values.astype(_VALUE).tobytes()
                    file.write(sha256(body).digest() + body)
                Path(name).replace(self._path(chunk))
            finally:
                with suppress(FileNotFoundError):
                    Path(name).unlink()
        except OSError as error:
            _log.warning("the answers of Prometheus are not cached in %s: %s", self.folder, error)

    def _path(self, chunk: int) -> Path:
        return self.folder / f"{self.key}-{chunk}.steps"
