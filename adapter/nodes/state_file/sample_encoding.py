"""The content of the state file: one line of JSON, binary columns, and a digest of both (pure).

    {"format": "tidewatch-node-samples", "version": 1, "meaning": …, "node_lists": […], "grids": […], "machines": {…}}
    for each grid: values as float32, then newest, scrape_seconds, advancing and reset_at as float64
    BLAKE2b digest of everything before it, 32 bytes

All numbers are little-endian. float32 holds a ratio with a relative error of at most 6e-8, or 0.000006%. The digest
detects damage; it does not protect against somebody who may write the file.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
import numpy as np

from adapter.foundation.files.digests import DIGEST_BYTES, with_digest
from adapter.foundation.objects.decoders import decoder_of
from adapter.nodes.model.loads import LoadResource  # noqa: TC001 - msgspec reads the annotation
from adapter.nodes.model.samples import MachineRecord, SampleGrid, SampleSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats

FORMAT: Final = "tidewatch-node-samples"
VERSION: Final = 1
_VALUE: Final = np.dtype("<f4")
_TIME: Final = np.dtype("<f8")
_TIMES_A_GRID: Final = 4

_Step = Annotated[int, msgspec.Meta(ge=1, le=86_400)]
_End = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
_Columns = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
_Index = Annotated[int, msgspec.Meta(ge=0, le=100)]


WRONG_SIZE: Final = "it is damaged: its size differs from what its first line states"
OTHER_MEANING: Final = "its samples come from other queries or another Prometheus than those configured now"


class SampleFileError(Exception):
    """A file cannot be used. The message is a clause whose subject is the file: `it is damaged: …`."""


class _Kind(msgspec.Struct):
    format: str
    version: int


class _Grid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    resource: LoadResource
    step_seconds: _Step
    end: _End
    columns: _Columns
    node_list: _Index


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line."""

    format: Literal["tidewatch-node-samples"]
    version: int
    meaning: str
    node_lists: list[tuple[str, ...]]
    """The lists of node names; grids with equal names share one list."""
    grids: list[_Grid]
    machines: dict[str, tuple[str, str, str, float | None]] = {}
    """The fields of the `MachineRecord` of each node; former versions wrote none."""


_KIND = decoder_of(_Kind)
_HEAD = decoder_of(_Head)


def encode_samples(samples: SampleSet, meaning: str) -> Iterable[bytes]:
    """Return the content of the file in pieces."""
    node_lists: dict[tuple[str, ...], int] = {}
    grids = [
        _Grid(
            grid.resource, grid.step_seconds, grid.end, grid.values.shape[1], node_lists.setdefault(grid.nodes, number)
        )
        for grid in samples.grids.values()
        for number in (len(node_lists),)
    ]
    machines = {
        name: (one.system_uuid, one.provider_id, one.uid, one.measured_since) for name, one in samples.machines.items()
    }
    head = _Head(FORMAT, VERSION, meaning, list(node_lists), grids, machines)
    pieces = [msgspec.json.encode(head) + b"\n"]
    for grid in samples.grids.values():
        pieces.append(_as_float32(grid.values).tobytes())
        pieces += [
            column.astype(_TIME, copy=False).tobytes()
            for column in (grid.newest, grid.scrape_seconds, grid.advancing, grid.reset_at)
        ]
    return with_digest(pieces)


def line_and_rest(content: bytes) -> tuple[bytes, memoryview]:
    """Return the first line of a file, and the rest up to its digest. Raises SampleFileError for a wrong digest."""
    body = memoryview(content)[:-DIGEST_BYTES]
    if hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest() != content[-DIGEST_BYTES:]:
        raise SampleFileError(f"it is damaged or cut off: the digest of its {len(content)} bytes does not match")
    end = content.find(b"\n") + 1
    return content[:end], body[end:]


def decode_samples(content: bytes, meaning: str) -> SampleSet:
    """Return the samples of a file. Raises SampleFileError."""
    line, body = line_and_rest(content)
    head = _head(line, meaning)
    sizes = [_size(grid, head) for grid in head.grids]
    if sum(sizes) != len(body):
        raise SampleFileError(WRONG_SIZE)
    grids: dict[LoadResource, SampleGrid] = {}
    at = 0
    for grid, size in zip(head.grids, sizes, strict=True):
        grids[grid.resource] = _grid(body[at : at + size], grid, head.node_lists[grid.node_list])
        at += size
    machines = {name: MachineRecord(*fields) for name, fields in head.machines.items()}
    return SampleSet(grids, from_file=True, machines=machines)


def newest_time(samples: SampleSet) -> float:
    """Return the time of the newest sample or step, in Unix seconds; 0 without samples."""
    times = [float(grid.end) for grid in samples.grids.values()]
    times += [float(time) for grid in samples.grids.values() for time in grid.newest[np.isfinite(grid.newest)].tolist()]
    return max(times, default=0.0)


def _head(line: bytes, meaning: str) -> _Head:
    try:
        kind = _KIND.decode(line)
        if kind.format == FORMAT and kind.version != VERSION:
            raise SampleFileError(f"it has version {kind.version}, and this program reads version {VERSION}")
        head = _HEAD.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise SampleFileError(f"it is not a file of node samples: {error}") from error
    if head.meaning != meaning:
        raise SampleFileError(OTHER_MEANING)
    return head


def _size(grid: _Grid, head: _Head) -> int:
    if grid.node_list >= len(head.node_lists):
        raise SampleFileError(f"it is damaged: the nodes of {grid.resource} are not listed")
    nodes = len(head.node_lists[grid.node_list])
    return nodes * (grid.columns * _VALUE.itemsize + _TIMES_A_GRID * _TIME.itemsize)


def _grid(content: memoryview, grid: _Grid, nodes: tuple[str, ...]) -> SampleGrid:
    cells = len(nodes) * grid.columns
    values = np.frombuffer(content, dtype=_VALUE, count=cells).reshape(len(nodes), grid.columns)
    times = np.frombuffer(content, dtype=_TIME, offset=cells * _VALUE.itemsize).reshape(_TIMES_A_GRID, len(nodes))
    newest, scrape_seconds, advancing, reset_at = (_make_read_only(row.astype(np.float64)) for row in times)
    return SampleGrid(
        resource=grid.resource,
        step_seconds=grid.step_seconds,
        end=grid.end,
        nodes=nodes,
        values=_make_read_only(values.astype(np.float64)),
        newest=newest,
        scrape_seconds=scrape_seconds,
        advancing=advancing,
        reset_at=reset_at,
    )


def _as_float32(values: Floats) -> NDArray[np.float32]:
    """Return the values as float32; a value that does not fit cannot be a ratio, and becomes NaN."""
    with np.errstate(over="ignore"):
        narrow = values.astype(_VALUE)
    narrow[~np.isfinite(narrow)] = np.nan
    return narrow


def _make_read_only(array: Floats) -> Floats:
    array.flags.writeable = False
    return array
