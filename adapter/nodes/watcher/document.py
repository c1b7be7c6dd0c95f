"""The document of `/watcher`, in the shape that Trimaran's plugins read (pure).

The shape is that of load-watcher's encoder (paypal/load-watcher, `pkg/watcher/api.go`), which differs from the one in
KEP-61: nodes are under `data.NodeMetricsMap`, types and operators are capitalized, and values are percentages. A client
that meets the KEP's shape decodes no node, reports no error, and scores each node 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from adapter.nodes.model.loads import AVG, STD, WINDOW_NAMES, WINDOWS_SECONDS, LoadResource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from adapter.nodes.model.loads import LoadSnapshot, ResourceLoad

METRIC_TYPES: Final = {
    LoadResource.CPU: "CPU",
    LoadResource.MEMORY: "Memory",
    LoadResource.NETWORK: "Bandwidth",
    LoadResource.DISK: "Storage",
    LoadResource.GPU: "GPU",
}
"""The plugins read `CPU` and `Memory`, and ignore all others."""
DIGITS: Final = 6
"""Of a percentage, after the point. The client's decoder overflows without an error at 18."""


@dataclass(frozen=True, slots=True)
class NodePlaces:
    """Where nodes are, by their names; a node that is absent has an empty text."""

    zones: Mapping[str, str] = field(default_factory=dict)
    pools: Mapping[str, str] = field(default_factory=dict)


def document_ends(snapshot: LoadSnapshot, window: int) -> tuple[bytes, bytes]:
    """Return what is before and after the nodes. `window` is an index of `WINDOWS_SECONDS`.

    Times are those of the samples: a document that rests on the local file has the old ones.
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
    snapshot: LoadSnapshot, window: int, places: NodePlaces, *, estimates: bool
) -> Iterator[tuple[int, bytes]]:
    """Yield the index and the entry (`"name":{…}`) of each node that is served.

    A node without an average of its CPU is left out, since the plugins would take it for idle. So is one whose CPU is
    estimated, unless `estimates`.
    """
    columns = [
        _Column(load, window, estimates=estimates)
        for resource in METRIC_TYPES
        if (load := snapshot.resources.get(resource)) is not None
    ]
    if not columns or columns[0].resource is not LoadResource.CPU:
        return
    served = columns[0].served
    for number, name in enumerate(snapshot.nodes):
        if served[number]:
            metrics = ",".join(column.metrics(number) for column in columns if column.served[number])
            place = f'"dataCenter":{_text(places.zones.get(name, ""))},"pool":{_text(places.pools.get(name, ""))}'
            metadata = f"{place}{columns[0].resolution(number)}"
            yield number, f'{_text(name)}:{{"metrics":[{metrics}],"tags":{{}},"metadata":{{{metadata}}}}}'.encode()


def metric_name(resource: LoadResource, *, is_estimated: bool = False) -> str:
    """Return the name of a metric in the document, which tells an estimate from a measurement."""
    return f"tidewatch:node_{resource}_utilization:{'estimated_ratio' if is_estimated else 'ratio'}"


class _Column:
    """One resource of one window, for all nodes."""

    def __init__(self, load: ResourceLoad, window: int, *, estimates: bool) -> None:
        self.resource = load.resource
        average, deviation = _percent(load.stats[window, AVG]), _percent(load.stats[window, STD])
        taken_from = load.taken_from[window].astype(np.int64)
        served = np.isfinite(average) & (average >= 0) & ((taken_from >= 0) | load.is_estimated)
        self.served: list[bool] = (served if estimates else served & ~load.is_estimated).tolist()
        self._average: list[float] = average.tolist()
        self._deviation: list[float] = deviation.tolist()
        self._has_deviation: list[bool] = (np.isfinite(deviation) & (deviation >= 0)).tolist()
        self._scrape: list[float] = np.round(load.resolution_seconds, 3).tolist()
        # The kinds of a node's metrics are few: their texts are made once. An estimate may come from no window.
        self._kind: list[int] = (np.where(taken_from < 0, window, taken_from) * 2 + load.is_estimated).tolist()
        kinds = [(of, is_estimated) for of in WINDOW_NAMES for is_estimated in (False, True)]
        self._average_heads = [_head(load.resource, "AVG", *kind) for kind in kinds]
        self._deviation_heads = [_head(load.resource, "STD", *kind) for kind in kinds]

    def resolution(self, number: int) -> str:
        """Return the scrape interval of a node as an entry of its metadata; empty where it is not known."""
        seconds = self._scrape[number]
        return f',"resolutionSeconds":{decimal_text(seconds)}' if seconds > 0 else ""

    def metrics(self, number: int) -> str:
        """Return the metrics of a node that is served; the deviation only where it is known."""
        kind = self._kind[number]
        average = f"{self._average_heads[kind]}{decimal_text(self._average[number])}}}"
        if not self._has_deviation[number]:
            return average
        return f"{average},{self._deviation_heads[kind]}{decimal_text(self._deviation[number])}}}"


def decimal_text(value: float) -> str:
    """Return a rounded, finite number in plain decimal notation, as load-watcher prints it: never with an exponent."""
    text = repr(value)
    return text if "e" not in text else f"{value:.{DIGITS}f}"


def _head(resource: LoadResource, operator: str, of_window: str, is_estimated: bool) -> str:  # noqa: FBT001 - a pair
    name = metric_name(resource, is_estimated=is_estimated)
    kind = METRIC_TYPES[resource]
    return f'{{"name":"{name}","type":"{kind}","operator":"{operator}","rollup":"{of_window}","value":'


def _percent(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.round(ratios * 100.0, DIGITS)


def _text(value: str) -> str:
    return msgspec.json.encode(value).decode()
