"""A strict stand-in for the client of Trimaran's plugins: which documents it accepts, and what the plugins read.

It follows what was observed of the Go client (load-watcher's service client, which decodes with gojay v1.2.13) and of
the plugins of scheduler-plugins: keys are case-sensitive, unknown keys are skipped, a number that the decoder cannot
take rejects the whole document, and null becomes 0, which looks like an idle node.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBER = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")
SMALLEST_EXPONENT = -19


class RejectedDocumentError(Exception):
    """The client refuses the document, and keeps the previous one."""


@dataclass(frozen=True, slots=True)
class WatcherMetric:
    name: str
    type: str
    operator: str
    rollup: str
    value: float


@dataclass(frozen=True, slots=True)
class WatcherDocument:
    timestamp: int
    duration: str
    start: int
    end: int
    source: str
    nodes: Mapping[str, tuple[WatcherMetric, ...]]


@dataclass(frozen=True, slots=True)
class Seen:
    """The load of one resource as a plugin reads it, in percent."""

    is_valid: bool
    mean: float
    deviation: float


def fetched(status: int, body: bytes) -> WatcherDocument:
    """Return the document of an answer. Raises RejectedDocumentError."""
    if status != 200:
        raise RejectedDocumentError(f"status {status}")
    return decoded_document(body)


def decoded_document(body: bytes) -> WatcherDocument:
    """Return what the client decodes. Raises RejectedDocumentError."""
    try:
        document = json.loads(body, parse_float=_number, parse_int=_number, parse_constant=_no_number)
    except ValueError as error:
        raise RejectedDocumentError(str(error)) from error
    window = _object(document, "window")
    nodes = _object(_object(document, "data"), "NodeMetricsMap")
    return WatcherDocument(
        timestamp=int(_value(document, "timestamp")),
        duration=_string(window, "duration"),
        start=int(_value(window, "start")),
        end=int(_value(window, "end")),
        source=_string(document, "source"),
        nodes={name: _metrics(node) for name, node in nodes.items()},
    )


def target_load_packing_cpu(metrics: tuple[WatcherMetric, ...]) -> Seen:
    """Return what TargetLoadPacking reads: the last CPU metric with AVG or Latest."""
    values = _means(metrics)
    return Seen(bool(values), values[-1] if values else 0.0, 0.0)


def peaks_cpu(metrics: tuple[WatcherMetric, ...]) -> Seen:
    """Return what Peaks reads: the first CPU metric."""
    values = _means(metrics)
    return Seen(bool(values), values[0] if values else 0.0, 0.0)


def mean_and_deviation(metrics: tuple[WatcherMetric, ...], kind: str) -> Seen:
    """Return what LoadVariationRiskBalancing and LowRiskOverCommitment read of `CPU` or `Memory`.

    Any metric of the type makes the resource valid, even one with an operator that the plugins do not know.
    """
    mean, deviation, has_average, is_valid = 0.0, 0.0, False, False
    for metric in metrics:
        if metric.type != kind:
            continue
        is_valid = True
        if metric.operator == "AVG":
            mean, has_average = metric.value, True
        elif metric.operator in {"", "Latest"} and not has_average:
            mean = metric.value
        elif metric.operator == "STD":
            deviation = metric.value
    return Seen(is_valid, mean, deviation)


def _means(metrics: tuple[WatcherMetric, ...]) -> list[float]:
    return [metric.value for metric in metrics if metric.type == "CPU" and metric.operator in {"AVG", "Latest"}]


def _metrics(node: object) -> tuple[WatcherMetric, ...]:
    if not isinstance(node, dict):
        raise RejectedDocumentError(f"a node is {node!r}")
    found = node.get("metrics") or []
    if not isinstance(found, list):
        raise RejectedDocumentError(f"metrics are {found!r}")
    _object(node, "tags")
    _object(node, "metadata")
    return tuple(
        WatcherMetric(
            _string(metric, "name"),
            _string(metric, "type"),
            _string(metric, "operator"),
            _string(metric, "rollup"),
            _value(metric, "value"),
        )
        for metric in found
    )


def _number(text: str) -> float:
    """Return a number as gojay decodes it; digits after the point are read as one int64."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no number")
    sign, whole, fraction, exponent = found.groups()
    if exponent and int(exponent) < SMALLEST_EXPONENT:
        raise ValueError(f"the exponent of {text} is too small")
    if len(whole) + len(fraction or "") > 19:
        raise ValueError(f"{text} overflows: the real client decodes a wrong number without an error")
    return float(f"{sign}{whole}.{fraction or 0}e{exponent or 0}")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _object(of: Any, key: str) -> dict[str, Any]:  # noqa: ANN401 - decoded JSON
    found = of.get(key) if isinstance(of, dict) else None
    if found is not None and not isinstance(found, dict):
        raise RejectedDocumentError(f"{key} is {found!r}")
    return found or {}


def _string(of: Any, key: str) -> str:  # noqa: ANN401 - decoded JSON
    found = of.get(key)
    if found is not None and not isinstance(found, str):
        raise RejectedDocumentError(f"{key} is {found!r}")
    return found or ""


def _value(of: Any, key: str) -> float:  # noqa: ANN401 - decoded JSON
    found = of.get(key)
    if found is None:
        return 0.0
    if not isinstance(found, float):
        raise RejectedDocumentError(f"{key} is {found!r}")
    return found
