"""Usage in files, so that a restart reads only missing parts, and usage that Prometheus has forgotten is kept.

A file is a compressed NumPy archive of arrays, preceded by a digest. It is replaced as a whole. A file that is damaged,
of another version or of other workloads is ignored.
"""

from __future__ import annotations

import hashlib
import io
import logging
import zipfile
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from adapter.foundation.files.credential_files import reason_of
from adapter.foundation.files.file_contents import opened_regular
from adapter.foundation.files.replaced_file import replacing
from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.service.runtime.logs import StateLog, fields
from recommender.kinds.resources.histograms import CPU_SCALE, DAY_SECONDS
from recommender.kinds.resources.resources_settings import LONGEST_HISTORY_SECONDS
from recommender.kinds.resources.usage import ContainerRows
from recommender.kinds.resources.workloads import PodContainer, SizedWorkload, WorkloadContainer
from recommender.running.memory.store_protocol import stored_name
from recommender.running.memory.unused_files import UnusedFiles
from recommender.running.usage.target_usage import MOST_CONTAINERS, MOST_PODS, KnownUsage, OomKill

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from recommender.running.usage.usage_needs import UsageNeed

_log = logging.getLogger(__name__)

VERSION: Final = 1
_DIGEST_BYTES: Final = 32
_MOST_BYTES: Final = 256 << 20


class UsageFileError(Exception):
    """A file cannot be used; the message says why."""


class _Kill(msgspec.Struct, array_like=True):
    day: int
    pod: tuple[str, str, str]
    needs_bytes: float
    seen: float


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    identity: str
    end: float
    covered: float
    names: list[tuple[str, str, str, str]]
    """The namespace, kind and name of the workload, and the name of the container, of each row."""
    pods: list[tuple[str, str, str, int]]
    """The namespace, pod, container and row of each container of a pod."""
    kills: list[_Kill]


_HEAD = decoder_of(_Head)


class UsageFiles:
    """Stores usage in the files of a folder. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unused = UnusedFiles(folder, LONGEST_HISTORY_SECONDS + DAY_SECONDS)
        self._states = StateLog(_log)

    def restore(self, need: UsageNeed, days: int) -> KnownUsage | None:
        """Return the usage of a recommendation; None if there is no usable file."""
        path = self._path(need.name)
        try:
            with opened_regular(path) as file:
                return _restored_usage(file, need, days)
        except FileNotFoundError:
            return None
        except (OSError, UsageFileError) as error:
            about = fields(recommendation=need.name, file=str(path), problem=reason_of(error))
            _log.warning("stored usage is not used: it is read from Prometheus again", extra=about)
            return None

    def save(self, need: UsageNeed, usage: KnownUsage) -> None:
        """Write the file of a recommendation. A failure is logged once."""
        content = _content(need, usage)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with replacing(self._path(need.name)) as file:
                file.write(hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest() + content)
        except OSError as error:
            message = f"usage cannot be written to {self._folder}: {error.strerror}"
            self._states.failed("write", f"{message}: a restart reads it again", level=logging.WARNING)
            return
        self._unused.drop(self._path(need.name))
        self._states.recovered("write", "usage is written again")

    def remove(self, name: str) -> None:
        """Delete the file of a recommendation that will not come back. A failure only wastes space."""
        with suppress(OSError):
            self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{stored_name(name)}.usage"


def _content(need: UsageNeed, usage: KnownUsage) -> bytes:
    cpu = usage.cpu
    pods = [(*pod, row) for pod, row in cpu.rows.places.items() if pod in usage.peaks]
    head = _Head(
        VERSION,
        need.identity,
        cpu.end,
        usage.covered,
        [(*name.workload, name.container) for name in cpu.rows.names],
        pods,
        [
            _Kill(day, (pod.namespace, pod.pod, pod.container), kill.needs_bytes, kill.seen)
            for day, of in enumerate(usage.kills)
            for pod, kill in of.items()
        ],
    )
    content = io.BytesIO()
    np.savez_compressed(
        content,
        head=np.frombuffer(msgspec.json.encode(head), dtype=np.uint8),
        weights=cpu.histograms.weights,
        samples=cpu.samples,
        first=cpu.first,
        last=cpu.last,
        measured=cpu.measured,
        peaks=np.array([usage.peaks[PodContainer(*pod[:3])] for pod in pods]).reshape(len(pods), usage.days),
    )
    return content.getvalue()


def _restored_usage(file: BinaryIO, need: UsageNeed, days: int) -> KnownUsage:
    """Return the usage in a file. Raises UsageFileError."""
    digest, content = file.read(_DIGEST_BYTES), file.read(_MOST_BYTES)
    if hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest() != digest:
        raise UsageFileError("it is damaged: its digest does not match")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            head = _HEAD.decode(arrays["head"].tobytes())
            found = {name: np.array(arrays[name]) for name in ("weights", "samples", "first", "last", "peaks")}
            if "measured" in arrays:
                found["measured"] = np.array(arrays["measured"])
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, msgspec.DecodeError) as error:
        raise UsageFileError(f"it is not one of this program: {error}") from error
    if head.version != VERSION:
        raise UsageFileError(f"it has version {head.version}, and this program reads {VERSION}")
    if head.identity != need.identity:
        raise UsageFileError("it belongs to other workloads, queries or another Prometheus")
    rows, pods = len(head.names), len(head.pods)
    shapes = {"weights": (days, rows, CPU_SCALE.count), "peaks": (pods, days)}
    shapes |= dict.fromkeys(("samples", "first", "last"), (rows,))
    # A file of an earlier version does not have it: its days count as a whole then.
    found.setdefault("measured", np.where(found["weights"].any(axis=-1), DAY_SECONDS, 0.0))
    shapes["measured"] = (days, rows)
    if any(found[name].shape != shape for name, shape in shapes.items()):
        raise UsageFileError("it is of another length of history")
    if rows > MOST_CONTAINERS or pods > MOST_PODS:
        raise UsageFileError("it has more containers than are kept")
    usage = KnownUsage.empty(days)
    names = tuple(WorkloadContainer(SizedWorkload(*each[:3]), each[3]) for each in head.names)
    places = {PodContainer(*each[:3]): each[3] for each in head.pods}
    cpu = usage.cpu
    cpu.rows, cpu.end, cpu.histograms.weights = ContainerRows(names, places), head.end, found["weights"]
    cpu.samples, cpu.first, cpu.last = found["samples"], found["first"], found["last"]
    cpu.measured = found["measured"]
    usage.covered = head.covered
    usage.peaks = dict(zip(places, found["peaks"], strict=True))
    for kill in head.kills:
        if 0 <= kill.day < days:
            usage.kills[kill.day][PodContainer(*kill.pod)] = OomKill(kill.needs_bytes, kill.seen)
    return usage
