"""The metrics of nodes in Prometheus's text format, prepared once per refresh.

With 5,000 nodes there are some 165,000 lines, which would take a registry seconds at each scrape. Only the ages of the
samples are written at the scrape itself, since an age that was prepared would be too low by up to a refresh, and would
stop growing if refreshes stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adapter.foundation.files.gzip_format import PackedText, Piece, compress, gzipped_text
from adapter.foundation.time.pace import UNPACED, Pace
from adapter.foundation.web.metric_text import escape_label_value, family
from adapter.nodes.model.loads import (
    AVG,
    MAX,
    SLOT_WINDOWS_SECONDS,
    STATS,
    VERDICTS,
    WINDOW_NAMES,
    WINDOWS_SECONDS,
    LoadResource,
    LoadSnapshot,
    NodeVerdict,
    ResourceLoad,
)
from adapter.nodes.model.week import FORECAST_VERDICTS
from adapter.nodes.watcher.document import decimal_texts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from adapter.nodes.model.arrays import Floats

DEFAULT_RESOURCES = (LoadResource.CPU, LoadResource.MEMORY)
_SHOWN = tuple(
    (window, stat)
    for window, seconds in enumerate(WINDOWS_SECONDS)
    for stat in range(len(STATS))
    if seconds not in SLOT_WINDOWS_SECONDS or stat in {AVG, MAX}
)
"""Windows and statistics that are shown. For an hour and a day, these are only the statistics that placement uses,
since each takes a line per node."""
_PIECE_BYTES = 128 * 1024
"""Bytes of text in a piece that is compressed separately; unpacking a piece takes half a millisecond."""
_NODES_AT_ONCE = 32
"""Number of nodes whose lines are written at once, which takes about half a millisecond."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeExposition:
    """The metrics of one snapshot."""

    _packed: tuple[PackedText, ...]
    """Everything except the ages. The plain text takes 17 MB for 5,000 nodes, and a reader needs one piece of it at a
    time."""
    _age_lines: str
    """A format with one `%.3f` for each time of `_sampled_at`."""
    _sampled_at: Floats

    def pieces(self, now: float) -> Iterator[Piece]:
        """Yield all families piece by piece; ages are those at `now`, in Unix seconds."""
        yield from self._packed
        yield self._ages(now)

    def gzipped(self, now: float) -> bytes:
        """Return all families in the gzip format, as consecutive members (RFC 1952, 2.2)."""
        return b"".join([*(piece.member for piece in self._packed), compress(self._ages(now))])

    def _ages(self, now: float) -> bytes:
        return (self._age_lines % tuple(np.maximum(now - self._sampled_at, 0.0).tolist())).encode()


def prepare_exposition(
    snapshot: LoadSnapshot, resources: Collection[LoadResource] = DEFAULT_RESOURCES, *, pace: Pace = UNPACED
) -> NodeExposition:
    """Return the metrics of a snapshot, with ratios only for these resources (`--node-metrics`)."""
    pieces: list[PackedText] = []
    waiting = bytearray()
    for lines in pace.timed(_prepared_lines(snapshot, resources)):
        waiting += "".join(lines).encode()
        if len(waiting) >= _PIECE_BYTES:
            pieces.append(gzipped_text(bytes(waiting)))
            waiting.clear()
    pieces.append(gzipped_text(bytes(waiting)))
    names = [escape_label_value(name) for name in snapshot.nodes]
    age_lines, sampled_at = _age_format(names, snapshot.resources)
    return NodeExposition(tuple(pieces), age_lines, sampled_at)


def _prepared_lines(snapshot: LoadSnapshot, resources: Collection[LoadResource]) -> Iterator[str]:
    """Yield the lines; those with ratios come in groups of several nodes."""
    yield family(
        "tidewatch_nodes",
        "Nodes by state. `unmapped` counts instances whose node is not known, `refused` those that do not count.",
    )
    for state, count in _states(snapshot).items():
        yield f'tidewatch_nodes{{state="{state}"}} {count}\n'
    yield family("tidewatch_node_verdicts", "Nodes by the verdict on their samples.")
    for resource, load in snapshot.resources.items():
        counts = np.bincount(load.verdicts, minlength=len(VERDICTS)).tolist()
        for verdict, count in zip(VERDICTS, counts, strict=True):
            yield f'tidewatch_node_verdicts{{resource="{resource}",verdict="{verdict}"}} {count}\n'
    if snapshot.forecast is not None:
        yield family("tidewatch_node_forecasts", "Nodes by whether their next hour is predicted, or why it is not.")
        counts = np.bincount(snapshot.forecast.verdicts, minlength=len(FORECAST_VERDICTS)).tolist()
        for forecast_verdict, count in zip(FORECAST_VERDICTS, counts, strict=True):
            yield f'tidewatch_node_forecasts{{verdict="{forecast_verdict}"}} {count}\n'
    yield family(
        "tidewatch_node_utilization_ratio",
        "Measured utilization of a node over a window (0..1): average, standard deviation, 95th percentile, maximum.",
    )
    for resource, load in snapshot.resources.items():
        if resource in resources:
            yield from _ratio_lines(snapshot.nodes, load)


def _ratio_lines(nodes: Sequence[str], load: ResourceLoad) -> Iterator[str]:
    """Yield the lines of some nodes at a time."""
    tails = [
        f'",resource="{load.resource}",window="{WINDOW_NAMES[window]}",stat="{STATS[stat]}"}} '
        for window, stat in _SHOWN
    ]
    lines = [f'tidewatch_node_utilization_ratio{{node="%s{tail}%s\n' for tail in tails]
    template = "".join(lines)
    # Readers of the metric cannot distinguish an estimate from a measurement.
    measured: Floats = np.where(load.is_estimated, np.nan, load.stats)
    windows, stats = zip(*_SHOWN, strict=True)
    rows = np.round(measured[list(windows), list(stats)], 6).T
    for start in range(0, len(nodes), _NODES_AT_ONCE):
        names = [escape_label_value(name) for name in nodes[start : start + _NODES_AT_ONCE]]
        part = rows[start : start + _NODES_AT_ONCE]
        texts = decimal_texts(part.T.ravel())
        columns = [texts[at : at + len(names)] for at in range(0, len(texts), len(names))]
        if np.isfinite(part).all():
            # Name and value alternate, for each line.
            yield "".join(map(template.__mod__, zip(*(each for one in columns for each in (names, one)), strict=True)))
            continue
        for name, known, row in zip(names, np.isfinite(part).tolist(), zip(*columns, strict=True), strict=True):
            found = zip(lines, known, row, strict=True)
            yield "".join(line % (name, text) for line, is_known, text in found if is_known)


def _states(snapshot: LoadSnapshot) -> dict[str, int]:
    cpu = snapshot.resources.get(LoadResource.CPU)
    estimated = np.zeros(len(snapshot.nodes), dtype=np.bool_)
    for load in snapshot.resources.values():
        estimated = estimated | load.is_estimated
    stale = VERDICTS.index(NodeVerdict.STALE)
    return {
        "known": len(snapshot.nodes),
        "unmapped": len({series.instance for series in snapshot.unmapped if not series.refused_for}),
        "refused": len({series.instance for series in snapshot.unmapped if series.refused_for}),
        "stale": 0 if cpu is None else int(np.count_nonzero(cpu.verdicts == stale)),
        "estimated": int(np.count_nonzero(estimated)),
    }


def _age_format(names: Sequence[str], resources: Mapping[LoadResource, ResourceLoad]) -> tuple[str, Floats]:
    """Return a format for the lines with ages, and the times for its placeholders: those of the nodes' CPU samples."""
    head = family("tidewatch_node_sample_age_seconds", "Age of the newest CPU sample of a node, at this scrape.")
    cpu = resources.get(LoadResource.CPU)
    if cpu is None:
        return head.replace("%", "%%"), np.empty(0)
    known = np.isfinite(cpu.sampled_at)
    lines = [
        f'tidewatch_node_sample_age_seconds{{node="{name.replace("%", "%%")}"}} %.3f\n'
        for name, is_known in zip(names, known.tolist(), strict=True)
        if is_known
    ]
    return head + "".join(lines), cpu.sampled_at[known]
