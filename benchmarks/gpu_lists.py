"""The lists of nodes and of pods of a GPU cluster, and the order in which the pods arrive."""

from __future__ import annotations

import csv
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from adapter.nodes.model.workload import GpuPodKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from random import Random

WHOLE_MILLI: Final = 1000
MOST_GPUS: Final = 64
"""The largest number of GPUs that a node may have."""
_NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu")
_POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


class ListError(ValueError):
    """A list that cannot be used; the message names the file and the line."""


class GpuNode(NamedTuple):
    """The capacity of a node."""

    cpu_milli: int
    memory_mib: int
    gpus: int


class Arrival(NamedTuple):
    """The requests of a pod."""

    shape: GpuPodKind
    memory_mib: int

    @property
    def gpus_milli(self) -> int:
        """Return how much the pod requests of all its GPUs together."""
        return self.shape.gpu_count * self.shape.gpu_milli


def read_nodes(path: Path) -> tuple[GpuNode, ...]:
    """Return the nodes of a list. Raises ListError, also if none of them has a GPU."""
    nodes = []
    for where, row in _rows(path, _NODE_COLUMNS):
        gpus = _whole(where, row, "gpu")
        if gpus > MOST_GPUS:
            raise ListError(f"{where}: gpu is {gpus}: a node has at most {MOST_GPUS}")
        nodes.append(GpuNode(_whole(where, row, "cpu_milli"), _whole(where, row, "memory_mib"), gpus))
    if not any(node.gpus for node in nodes):
        raise ListError(f"{path}: no node has a GPU: name a list of nodes with a number above 0 in the column gpu")
    return tuple(nodes)


def read_pods(path: Path) -> tuple[Arrival, ...]:
    """Return the pods of a list. Raises ListError, also if none of them requests a GPU."""
    pods = tuple(_pod(where, row) for where, row in _rows(path, _POD_COLUMNS))
    if not any(pod.gpus_milli for pod in pods):
        raise ListError(f"{path}: no pod requests a GPU: name a list with a number above 0 in the column num_gpu")
    return pods


def arrivals(pods: Sequence[Arrival], until_milli: float, random: Random) -> list[Arrival]:
    """Return the pods in random order, then random draws from them, until they request this much of the GPUs."""
    order = random.sample(pods, len(pods))
    requested = sum(pod.gpus_milli for pod in pods)
    while requested < until_milli:
        drawn = random.choice(pods)
        order.append(drawn)
        requested += drawn.gpus_milli
    sums = accumulate(pod.gpus_milli for pod in order)
    last = next(place for place, requested in enumerate(sums) if requested >= until_milli)
    return order[: last + 1]


def _pod(where: str, row: Mapping[str, str]) -> Arrival:
    count, milli = _whole(where, row, "num_gpu"), _whole(where, row, "gpu_milli", empty=0)
    if count and not 0 < milli <= WHOLE_MILLI:
        raise ListError(f"{where}: gpu_milli is {milli}: write 1 to {WHOLE_MILLI} for a pod with GPUs")
    shape = GpuPodKind(_whole(where, row, "cpu_milli"), count, milli if count else 0)
    return Arrival(shape, _whole(where, row, "memory_mib"))


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each row with its file and line. Raises ListError for a file that is not such a list."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise ListError(f"{path}: line 1: there is no column {', '.join(missing)}: the first line names them")
            for row in reader:
                yield f"{path}:{reader.line_num}", row
    except OSError as error:
        raise ListError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ListError(f"{path}: this is no list of comma-separated values in UTF-8: {error}") from error


def _whole(where: str, row: Mapping[str, str], column: str, empty: int | None = None) -> int:
    text = (row[column] or "").strip()
    if not text and empty is not None:
        return empty
    try:
        found = float(text)
        number = int(found)
    except (ValueError, OverflowError):
        number, found = -1, 0.0
    if number < 0 or number != found or number > _LARGEST:
        raise ListError(f"{where}: {column} is {text[:40]!r}: write a whole number from 0 to {_LARGEST:,}")
    return number


_LARGEST: Final = 10**12
