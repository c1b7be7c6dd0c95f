"""The content of the state file of the week: one line of JSON, the means, and a digest of both (pure).

{"format": "tidewatch-node-week", "version": 1, "meaning": …, "end": …, "nodes": […]}
the mean of each quarter of an hour of each node as float16, little-endian
BLAKE2b digest of everything before it, 32 bytes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
import numpy as np

from adapter.foundation.files.digests import with_digest
from adapter.foundation.objects.decoders import decoder_of
from adapter.nodes.model.week import QUARTER_SECONDS, QUARTERS, LoadWeek
from adapter.nodes.state_file.sample_encoding import OTHER_MEANING, WRONG_SIZE, SampleFileError, line_and_rest

if TYPE_CHECKING:
    from collections.abc import Iterable

_FORMAT: Final = "tidewatch-node-week"
_VERSION: Final = 1
_VALUE: Final = np.dtype("<f2")


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line."""

    format: Literal["tidewatch-node-week"]
    version: Literal[1]
    meaning: str
    end: Annotated[int, msgspec.Meta(ge=0, le=2**40, multiple_of=QUARTER_SECONDS)]
    nodes: tuple[str, ...]


_HEAD = decoder_of(_Head)


def encode_week(week: LoadWeek, meaning: str) -> Iterable[bytes]:
    """Return the content of the file in pieces."""
    head = _Head(_FORMAT, _VERSION, meaning, week.end, week.nodes)
    return with_digest([msgspec.json.encode(head) + b"\n", week.means.astype(_VALUE, copy=False).tobytes()])


def decode_week(content: bytes, meaning: str) -> LoadWeek:
    """Return the week of a file. Raises SampleFileError."""
    line, body = line_and_rest(content)
    try:
        head = _HEAD.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise SampleFileError(f"it is not a file of the week of nodes that this program reads: {error}") from error
    if head.meaning != meaning:
        raise SampleFileError(OTHER_MEANING)
    if len(body) != len(head.nodes) * QUARTERS * _VALUE.itemsize:
        raise SampleFileError(WRONG_SIZE)
    means = np.frombuffer(body, dtype=_VALUE).reshape(len(head.nodes), QUARTERS).astype(np.float16)
    # A value that is not a ratio counts as unknown.
    means[~((means >= 0.0) & (means <= 1.0))] = np.nan
    return LoadWeek(head.end, head.nodes, means)
