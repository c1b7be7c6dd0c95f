"""Documents as bytes, plain and compressed, with an entity tag: made once a refresh, so that a request only sends them.

A single host's document is cut out of the whole one on demand, so nothing is kept twice.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from adapter.nodes.model.answers import API_VERSION, rfc3339
from adapter.nodes.model.loads import WINDOWS_SECONDS
from adapter.nodes.watcher.document import document_ends, node_entries
from adapter.timing.pace import UNPACED
from adapter.web.rendering import GZIP_FORMAT, GZIP_FROM_BYTES, GZIP_LEVEL
from adapter.web.tagged import entity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from adapter.nodes.model.loads import LoadSnapshot
    from adapter.nodes.watcher.document import NodePlaces
    from adapter.timing.pace import Pace
    from adapter.web.http import Response


@dataclass(frozen=True, slots=True, eq=False)
class PreparedWindow:
    """The document of one window."""

    whole: Response
    """With entity tag and compressed form."""
    hosts: int
    """How many nodes it has."""
    _ends: tuple[bytes, bytes]
    _places: NDArray[np.int64]
    """Where in the document the entry of each node begins and ends, of shape (nodes, 2); -1 if it has none."""

    def of_host(self, number: int) -> Response | None:
        """Return the document of one node, by its index in the snapshot; None if the node is not served."""
        start, end = self._places[number].tolist()
        if start < 0:
            return None
        head, tail = self._ends
        return entity(b"".join((head, self.whole.body[start:end], tail)))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedWatcher:
    """All that is sent about one snapshot."""

    snapshot: LoadSnapshot
    windows: tuple[PreparedWindow, ...]
    """In the order of `WINDOWS_SECONDS`."""
    unmapped: Response


def prepare_watcher(
    snapshot: LoadSnapshot, places: NodePlaces, *, estimates: bool = False, pace: Pace = UNPACED
) -> PreparedWatcher:
    """Return the documents of a snapshot. Takes some tenths of a second for 5,000 nodes, in slices of the pace."""
    windows = tuple(
        _prepared_window(snapshot, window, places, estimates=estimates, pace=pace)
        for window in range(len(WINDOWS_SECONDS))
    )
    return PreparedWatcher(snapshot, windows, _unmapped(snapshot))


def _prepared_window(
    snapshot: LoadSnapshot, window: int, places: NodePlaces, *, estimates: bool, pace: Pace
) -> PreparedWindow:
    head, tail = document_ends(snapshot, window)
    where = np.full((len(snapshot.nodes), 2), -1, dtype=np.int64)
    plain, packer = [head], zlib.compressobj(GZIP_LEVEL, wbits=GZIP_FORMAT)
    packed = [packer.compress(head)]
    at, hosts = len(head), 0
    for entries in pace.timed(node_entries(snapshot, window, places, estimates=estimates)):
        for number, entry in entries:
            at += 1 if hosts else 0
            where[number] = at, at + len(entry)
            at += len(entry)
            hosts += 1
        part = b",".join(entry for _, entry in entries)
        part = part if len(plain) == 1 else b"," + part
        plain.append(part)
        packed.append(packer.compress(part))
    plain.append(tail)
    packed += [packer.compress(tail), packer.flush()]
    where.flags.writeable = False
    whole = replace(entity(b"".join(plain)), gzipped=b"".join(packed))
    return PreparedWindow(whole, hosts, (head, tail), where)


def _unmapped(snapshot: LoadSnapshot) -> Response:
    body = msgspec.json.encode(
        {
            "apiVersion": API_VERSION,
            "kind": "UnmappedSeries",
            "assembled_at": rfc3339(snapshot.assembled_at),
            "items": [
                {
                    "instance": series.instance,
                    "labels": dict(series.labels),
                    "resources": list(series.resources),
                    "fix": series.fix,
                }
                for series in snapshot.unmapped
            ],
        }
    )
    packed = zlib.compress(body, GZIP_LEVEL, wbits=GZIP_FORMAT) if len(body) > GZIP_FROM_BYTES else None
    return replace(entity(body), gzipped=packed)
