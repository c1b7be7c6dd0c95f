"""A cache of range queries' answers on disk, so that a later backtest queries only what the cache lacks.

Each file holds a digest, the number of the first step, and the values of adjacent steps. No file is essential: what a
damaged file held is queried again. The folder keeps the files that were used last.
"""

from __future__ import annotations

import logging
import math
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.files.file_contents import read_regular
from adapter.foundation.files.replaced_file import replace_file
from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.sources.prometheus.backends.data_sources import source_of

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from recommender.kinds.predictive.arrays import FloatArray

_log = logging.getLogger(__name__)

_FORMAT: Final = "4"
UNKNOWN: Final = math.inf
"""The value of a step whose sample is infinite or not a number. A step without a sample is NaN."""
_DIGEST_BYTES: Final = 32
_LARGEST_BYTES: Final = 1 << 30
"""The limit of a file's size, far more than a chunk of the shortest steps takes."""
KEPT_FILES: Final = 4096
"""The number of files that the folder keeps: 64 MiB, or the answers to 300 queries for 14 days by the minute."""
KEPT_SECONDS: Final = 86_400.0
"""A file used more recently stays however many there are, since a run in progress may read it again."""
_OURS: Final = re.compile(r"[0-9a-f]{32}-[0-9]+\.steps|\.[0-9a-f]{32}-[0-9]+\.steps\.[0-9a-f]+\.new")
"""The names of the files, and of parts that a killed process left behind."""
_FIRST: Final = np.dtype("<i8")
_VALUE: Final = np.dtype("<f8")


@dataclass(frozen=True, slots=True)
class CachedSteps:
    """Values of adjacent steps."""

    first: int
    """The number of the first step since the Unix epoch."""
    values: FloatArray
    """The values; NaN where Prometheus has none, and `UNKNOWN` where it has one that cannot be a load."""

    @property
    def end(self) -> int:
        """Return the number of the step after the last one."""
        return self.first + len(self.values)


@dataclass(frozen=True, slots=True)
class RangeCache:
    """The cached answers to one query with one step, in a folder."""

    folder: Path
    key: str
    _states: StateLog = field(default_factory=lambda: StateLog(_log), compare=False, repr=False)

    @classmethod
    def of(cls, folder: Path, settings: PrometheusSettings, query: str, step_seconds: int) -> RangeCache:
        """Return the cache of a query for one server, tenant, user and list of matchers; secrets are only hashed."""
        # With another Authorization header, whoever runs this may be another tenant.
        parts = (_FORMAT, source_of(settings), settings.headers, query, step_seconds)
        return cls(folder, sha256(repr(parts).encode()).hexdigest()[:32])

    def read(self, chunk: int) -> CachedSteps | None:
        """Return the known values of a chunk; None if there are none."""
        try:
            content = read_regular(self._path(chunk), _LARGEST_BYTES)
        except OSError:
            return None
        digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if len(body) < _FIRST.itemsize or sha256(body).digest() != digest:
            return None
        with suppress(OSError):
            os.utime(self._path(chunk))
        (first,) = np.frombuffer(body, _FIRST, count=1)
        return CachedSteps(int(first), np.frombuffer(body, _VALUE, offset=_FIRST.itemsize).astype(np.float64))

    def write(self, chunk: int, steps: CachedSteps) -> None:
        """Store the known values of a chunk. If the disk is full or read-only, only the cache is affected."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            body = np.array([steps.first], _FIRST).tobytes() + steps.values.astype(_VALUE).tobytes()
            replace_file(self._path(chunk), sha256(body).digest() + body, mode=0o600, durable=False)
        except OSError as error:
            message = f"the answers of Prometheus are not cached in {self.folder}: {error.strerror}"
            self._states.failed("write", message, level=logging.WARNING)

    def drop_unused(self, now: float) -> None:
        """Delete the files of any query beyond KEPT_FILES that were used longest ago. A failure only wastes space."""
        with suppress(OSError):
            files = [(file.lstat(), file) for file in self.folder.iterdir() if _OURS.fullmatch(file.name)]
            used = sorted(
                ((found.st_mtime, file) for found, file in files if stat.S_ISREG(found.st_mode)), reverse=True
            )
            kept = {*[file for _, file in used if not file.name.startswith(".")][:KEPT_FILES]}
            for at, file in used:
                if file not in kept and now - at > KEPT_SECONDS:
                    file.unlink(missing_ok=True)

    def _path(self, chunk: int) -> Path:
        return self.folder / f"{self.key}-{chunk}.steps"
