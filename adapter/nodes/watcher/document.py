"""The document of `/watcher`, in the shape that Trimaran's plugins read (pure).

The shape is that of load-watcher's encoder (paypal/load-watcher, `pkg/watcher/api.go`), which differs from the one in
KEP-61: nodes are under `data.NodeMetricsMap`, types and operators are capitalized, and values are percentages. If a
client gets a document in the KEP's shape, it decodes no node, reports no error, and scores each node 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from adapter.nodes.model.loads import AVG, STD, WINDOW_NAMES, WINDOWS_SECONDS, LoadResource, LoadSnapshot, ResourceLoad

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray


METRIC_TYPES: Final = {
    LoadResource.CPU: "CPU",
    LoadResource.MEMORY: "Memory",
    LoadResource.NETWORK: "Bandwidth",
    LoadResource.DISK: "Storage",
    LoadResource.GPU: "GPU",
}
"""The plugins read `CPU` and `Memory`, and ignore all others."""
DIGITS: Final = 6
"""Digits of a percentage after the point. The client's decoder overflows without an error at 18."""
_EXPONENT_BELOW, _EXPONENT_FROM = 1e-4, 1e16
"""The bounds outside which Python writes numbers with an exponent."""
_ENTRIES_AT_ONCE: Final = 64
"""Number of entries that are written at once, which takes about half a millisecond."""
_NO_TEXT: Final = "%.0s"
"""A format that takes a text and writes nothing."""


@dataclass(frozen=True, slots=True)
class NodeTopology:
    """The zone and pool of nodes by node name; the text is empty for a node that is not listed."""

    zones: Mapping[str, str] = field(default_factory=dict)
    pools: Mapping[str, str] = field(default_factory=dict)


def document_ends(snapshot: LoadSnapshot, window: int) -> tuple[bytes, bytes]:
    """Return the parts of the document before and after the nodes. `window` is an index of `WINDOWS_SECONDS`.

    Start and end of the window are times of samples. The timestamp is that of the refresh or, for samples from the
    state file, the end of the window.
    """
    end = int(snapshot.window_end)
    timestamp = end if snapshot.from_file else int(snapshot.assembled_at)
    start = end - WINDOWS_SECONDS[window]
    head = (
        f'{{"timestamp":{timestamp},"window":{{"duration":"{WINDOW_NAMES[window]}","start":{start},"end":{end}}},'
        '"source":"Prometheus","data":{"NodeMetricsMap":{'
    )
    return head.encode(), b"}}}"


def node_entries(
    snapshot: LoadSnapshot, window: int, places: NodeTopology, *, estimates: bool
) -> Iterator[tuple[NDArray[np.intp], list[bytes]]]:
    """Yield the indexes and the entries (`"name":{…}`) of nodes that are served, a few nodes at a time.

    A node without an average of its CPU is left out, since the plugins would consider it idle. So is one whose CPU is
    estimated, unless `estimates`.
    """
    columns = [
        _Column(load, window, estimates=estimates)
        for resource in METRIC_TYPES
        if (load := snapshot.resources.get(resource)) is not None
    ]
    if not columns or columns[0].resource is not LoadResource.CPU:
        return
    numbers = np.flatnonzero(columns[0].served)
    templates = _Templates(columns)
    for start in range(0, len(numbers), _ENTRIES_AT_ONCE):
        part = numbers[start : start + _ENTRIES_AT_ONCE]
        names = [snapshot.nodes[number] for number in part]
        values = decimal_texts(np.concatenate([column.values[:, part] for column in columns], axis=None))
        texts = (
            _quote_texts(names),
            *(values[at : at + len(part)] for at in range(0, len(values), len(part))),
            _quote_texts([places.zones.get(name, "") for name in names]),
            _quote_texts([places.pools.get(name, "") for name in names]),
            columns[0].resolutions(part),
        )
        rows = zip(templates.of(part), zip(*texts, strict=True), strict=True)
        yield part, [(template % row).encode() for template, row in rows]


def metric_name(resource: LoadResource, *, is_estimated: bool = False) -> str:
    """Return the name of a metric in the document, which distinguishes an estimate from a measurement."""
    return f"tidewatch:node_{resource}_utilization:{'estimated_ratio' if is_estimated else 'ratio'}"


class _Column:
    """One resource of one window, for all nodes."""

    def __init__(self, load: ResourceLoad, window: int, *, estimates: bool) -> None:
        self.resource = load.resource
        average, deviation = self.values = _percent(load.stats[window, [AVG, STD]])
        taken_from = load.taken_from[window].astype(np.int64)
        served = np.isfinite(average) & (average >= 0) & ((taken_from >= 0) | load.is_estimated)
        self.served: NDArray[np.bool_] = served if estimates else served & ~load.is_estimated
        has_deviation = np.isfinite(deviation) & (deviation >= 0)
        self._scrape = np.round(load.resolution_seconds, 3)
        # A node's metrics have few different forms. An estimate may not come from any window.
        form = (np.where(taken_from < 0, window, taken_from) * 2 + load.is_estimated) * 2 + has_deviation
        self.form: NDArray[np.int64] = np.where(self.served, 1 + form, 0)

    def template(self, form: int) -> str:
        """Return the template of a node's metrics, with placeholders for the average and the deviation."""
        if not form:
            return _NO_TEXT * 2
        kind, has_deviation = divmod(form - 1, 2)
        of_window, is_estimated = divmod(kind, 2)
        average, deviation = (
            _head(self.resource, operator, WINDOW_NAMES[of_window], bool(is_estimated)).replace("%", "%%")
            for operator in ("AVG", "STD")
        )
        return f"{average}%s}}{f',{deviation}%s}}' if has_deviation else _NO_TEXT}"

    def resolutions(self, numbers: NDArray[np.intp]) -> list[str]:
        """Return each node's scrape interval as an entry of its metadata; empty if the interval is not known."""
        return [
            f',"resolutionSeconds":{decimal_text(seconds)}' if seconds > 0 else ""
            for seconds in self._scrape[numbers].tolist()
        ]


class _Templates:
    """The text of entries, which most nodes share except for name, values and place."""

    def __init__(self, columns: Sequence[_Column]) -> None:
        self._columns = columns
        self._forms = np.stack([column.form for column in columns], axis=1)
        self._known: dict[tuple[int, ...], str] = {}

    def of(self, numbers: NDArray[np.intp]) -> Iterator[str]:
        """Yield the template of each of these nodes."""
        for forms in map(tuple, self._forms[numbers].tolist()):
            if forms not in self._known:
                self._known[forms] = self._make_template(forms)
            yield self._known[forms]

    def _make_template(self, forms: tuple[int, ...]) -> str:
        parts = [column.template(form) for column, form in zip(self._columns, forms, strict=True)]
        # The first column is served; a comma precedes each further one that is served.
        metrics = parts[0] + "".join(
            f",{part}" if form else part for part, form in zip(parts[1:], forms[1:], strict=True)
        )
        return f'%s:{{"metrics":[{metrics}],"tags":{{}},"metadata":{{"dataCenter":%s,"pool":%s%s}}}}'


def decimal_text(value: float) -> str:
    """Return a rounded, finite number in plain decimal notation, as load-watcher prints it: never with an exponent."""
    text = repr(value)
    return text if "e" not in text else f"{value:.{DIGITS}f}"


def decimal_texts(values: NDArray[np.float64]) -> list[str]:
    """Return the `decimal_text` of each number; for numbers that are not finite, the text is arbitrary."""
    # Four times as fast as Python's own `repr`, with the same digits.
    texts = msgspec.json.encode(values.tolist())[1:-1].decode().split(",") if len(values) else []
    magnitude = np.abs(values)
    for place in np.flatnonzero((magnitude < _EXPONENT_BELOW) & (magnitude > 0) | (magnitude >= _EXPONENT_FROM)):
        texts[place] = decimal_text(float(values[place]))
    return texts


def _head(resource: LoadResource, operator: str, of_window: str, is_estimated: bool) -> str:  # noqa: FBT001 - a pair
    name = metric_name(resource, is_estimated=is_estimated)
    kind = METRIC_TYPES[resource]
    return f'{{"name":"{name}","type":"{kind}","operator":"{operator}","rollup":"{of_window}","value":'


def _percent(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.round(ratios * 100.0, DIGITS)


def _quote_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts as JSON strings."""
    encoder = msgspec.json.Encoder()
    return [encoder.encode(text).decode() for text in texts]
