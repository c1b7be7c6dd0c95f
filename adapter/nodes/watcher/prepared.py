"""Documents as bytes, plain and compressed, with an entity tag: made once per refresh, so requests only send them.

A single host's document is cut out of the whole one on demand, so nothing is kept twice.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from adapter.foundation.files.gzip_format import GzipWriter
from adapter.foundation.time.pace import UNPACED, Pace
from adapter.foundation.time.timestamps import rfc3339
from adapter.foundation.web.rendering import compressed_in_advance
from adapter.foundation.web.tagged import entity
from adapter.nodes.model.answers import API_VERSION
from adapter.nodes.watcher.document import NodeTopology, document_ends, node_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from adapter.foundation.web.http import Response
    from adapter.nodes.model.loads import LoadSnapshot

DEFAULT_WINDOW: Final = 0
"""The window that `/watcher` serves by default, as an index of `WINDOWS_SECONDS`."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedWindow:
    """The document of one window."""

    whole: Response
    """The whole document, with its entity tag and compressed form."""
    hosts: int
    """The number of nodes in the document."""
    _ends: tuple[bytes, bytes]
    _places: NDArray[np.int64]
    """Start and end of each node's entry in the document, of shape (nodes, 2); -1 if it has none."""

    def of_host(self, number: int) -> Response | None:
        """Return the document of one node, by its index in the snapshot; None if the node is not served."""
        start, end = self._places[number].tolist()
        if start < 0:
            return None
        head, tail = self._ends
        return entity(b"".join((head, self.whole.body[start:end], tail)))


class PreparedWindows:
    """The documents of the windows, by their indexes in `WINDOWS_SECONDS`.

    All except the default one are made when they are first requested: hardly any client requests them, and each takes 5
    MB and a tenth of a second for 5,000 nodes. Safe to use from many threads.
    """

    def __init__(self, make: Callable[[int], PreparedWindow], made: Mapping[int, PreparedWindow]) -> None:
        """`make` makes the documents that are not in `made`."""
        self._make = make
        self._made = dict(made)
        self._making = threading.Lock()

    @property
    def made_windows(self) -> tuple[int, ...]:
        """Return the windows that have been made so far."""
        return tuple(self._made)

    def __getitem__(self, window: int) -> PreparedWindow:
        """Return the document of a window."""
        if (found := self._made.get(window)) is not None:
            return found
        with self._making:
            if (found := self._made.get(window)) is None:
                found = self._made[window] = self._make(window)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class PreparedWatcher:
    """Everything that is sent about one snapshot."""

    snapshot: LoadSnapshot
    windows: PreparedWindows
    unmapped: Response


def prepare_watcher(
    snapshot: LoadSnapshot,
    places: NodeTopology,
    before: PreparedWatcher | None = None,
    *,
    estimates: bool = False,
    pace: Pace = UNPACED,
) -> PreparedWatcher:
    """Return the documents of a snapshot: the default window, and those that were made `before`.

    This takes a tenth of a second per window for 5,000 nodes, in slices as `pace` allows.
    """

    def prepared(window: int, pace: Pace = UNPACED) -> PreparedWindow:
        return _prepared_window(snapshot, window, places, estimates=estimates, pace=pace)

    ahead = before.windows.made_windows if before is not None else (DEFAULT_WINDOW,)
    windows = PreparedWindows(prepared, {window: prepared(window, pace) for window in ahead})
    return PreparedWatcher(snapshot, windows, _unmapped_response(snapshot))


def _prepared_window(
    snapshot: LoadSnapshot, window: int, places: NodeTopology, *, estimates: bool, pace: Pace
) -> PreparedWindow:
    head, tail = document_ends(snapshot, window)
    where = np.full((len(snapshot.nodes), 2), -1, dtype=np.int64)
    plain, packer = [head], GzipWriter()
    packer.add(head)
    at, hosts = len(head), 0
    for entries in pace.timed(node_entries(snapshot, window, places, estimates=estimates)):
        for numbers, found in entries:
            # A comma precedes each entry except the first.
            part = b",".join(found if not hosts else (b"", *found))
            ends = at + np.cumsum([len(entry) + 1 for entry in found]) - (0 if hosts else 1)
            where[numbers, 1] = ends
            where[numbers, 0] = ends - [len(entry) for entry in found]
            at, hosts = at + len(part), hosts + len(found)
            plain.append(part)
            packer.add(part)
    plain.append(tail)
    packer.add(tail)
    where.flags.writeable = False
    whole = replace(entity(b"".join(plain)), gzipped=packer.end())
    return PreparedWindow(whole, hosts, (head, tail), where)


def _unmapped_response(snapshot: LoadSnapshot) -> Response:
    body = msgspec.json.encode(
        {
            "apiVersion": API_VERSION,
            "kind": "UnmappedSeries",
            "assembled_at": rfc3339(snapshot.assembled_at),
            "jobs": [
                {"labels": dict(job.labels), "nodes": {str(resource): count for resource, count in job.nodes.items()}}
                for job in snapshot.measured_by
            ],
            "items": [
                {
                    "instance": series.instance,
                    "labels": dict(series.labels),
                    "resources": list(series.resources),
                    "refused": series.refused_for,
                    "fix": series.fix,
                }
                for series in snapshot.unmapped
            ],
        }
    )
    return replace(entity(body), gzipped=compressed_in_advance(body))
