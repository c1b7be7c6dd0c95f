"""`/api/v1/query` for the descheduler: the utilisation of every node, as Prometheus would answer.

The descheduler wants a vector whose label `instance` names the node, and values from 0 to 1. Each node that is measured
has a sample. A node whose load is unknown or only estimated has none: pods must not be moved because of a load that
nobody has measured. The values are the current ones, without the waiting time after which a node counts as hot.

For the resource `any`, the sample of a node is the larger of its CPU and its memory, each as a share of the limit above
which a node is hot, and so 1 at the limit or above it. It is needed because the descheduler accepts the load of only
one resource.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import parse_qs

import numpy as np

from adapter.foundation.reports.counts import first_names
from adapter.foundation.time.timestamps import seconds_with_offset
from adapter.foundation.web.http import Request, Response, json_line
from adapter.foundation.web.routes import Route
from adapter.nodes.model.arrays import rearranged_rows, rows_in
from adapter.nodes.model.loads import STATS, WINDOW_NAMES, LoadResource, LoadSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.nodes_snapshot import NodesSnapshot
    from adapter.nodes.model.scheduling_settings import HotspotSettings

METRIC: Final = "tidewatch_node_utilization_ratio"
ANY: Final = "any"

_VALUES: Final = {"resource": (*map(str, LoadResource), ANY), "window": WINDOW_NAMES, "stat": STATS}
_LONGEST: Final = 1000
_SPACE: Final = r"[ \t\r\n]*"
_MATCHER: Final = rf"""{_SPACE}([a-z]+){_SPACE}={_SPACE}(?:"([a-z0-9]*)"|'([a-z0-9]*)'){_SPACE}"""
_SHAPE: Final = re.compile(rf"{_SPACE}{METRIC}{_SPACE}\{{({_MATCHER}(?:,{_MATCHER}){{2}}),?{_SPACE}\}}{_SPACE}")
_ONE_MATCHER: Final = re.compile(_MATCHER)


class QueryExpressionError(ValueError):
    """The expression is not answered here; the message says which form is answered."""


@dataclass(frozen=True, slots=True)
class UtilizationSelector:
    """Which number of each node is requested."""

    resource: LoadResource | None
    """The resource; None for the larger of CPU and memory, each as a share of its limit."""
    window: int
    """An index of `WINDOW_NAMES`."""
    stat: int
    """An index of `STATS`."""


def parse_query(text: str) -> UtilizationSelector:
    """Return the meaning of the expression. Raises QueryExpressionError.

    There is one form, in PromQL's syntax: tidewatch_node_utilization_ratio{resource="cpu", window="15m", stat="avg"}
    """
    shape = _SHAPE.fullmatch(text) if len(text) <= _LONGEST else None
    if shape is None:
        raise QueryExpressionError(
            f'only {METRIC}{{resource="…", window="…", stat="…"}} is answered here, with these three matchers'
        )
    found = {name: double or single for name, double, single in _ONE_MATCHER.findall(shape.group(1))}
    for name, values in _VALUES.items():
        if found.get(name) not in values:
            raise QueryExpressionError(f"the label {name} must be matched with = once: one of {', '.join(values)}")
    resource = None if found["resource"] == ANY else LoadResource(found["resource"])
    return UtilizationSelector(resource, WINDOW_NAMES.index(found["window"]), STATS.index(found["stat"]))


_LARGEST_BODY_BYTES: Final = 64 * 1024
_MOST_FIELDS: Final = 20
_LOOKBACK_SECONDS: Final = 300.0
"""Maximum age of samples that an instant query returns, which is Prometheus's default."""
_NAMED: Final = 3
_OF_ANY: Final = (LoadResource.CPU, LoadResource.MEMORY)
_NO_LIMITS: Final = "resource any needs a limit of cpu or memory under hotspots in the scheduling configuration"
Limits: TypeAlias = "Mapping[LoadResource, float]"


class _QueryError(Exception):
    """A request that cannot be answered, with Prometheus's name for its type."""

    def __init__(self, status: int, error_type: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.error_type = error_type


def query_routes(
    snapshot: Callable[[], NodesSnapshot], now: Callable[[], float], settings: HotspotSettings
) -> tuple[Route, ...]:
    """Return the route of `/api/v1/query`; `now` returns Unix seconds."""
    limits = {resource: settings.limits[resource] for resource in _OF_ANY if settings.limits.get(resource, 0.0) > 0.0}

    def handle(request: Request) -> Response:
        try:
            selector, time = _requested_selector(request)
            return _answer(snapshot(), selector, limits, now() if time is None else time)
        except _QueryError as e:
            document = {"status": "error", "errorType": e.error_type, "error": str(e)}
            return Response(e.status, json_line(document))

    return (Route("/api/v1/query", handle, ("GET", "POST"), _LARGEST_BODY_BYTES),)


def _requested_selector(request: Request) -> tuple[UtilizationSelector, float | None]:
    """Return the selector and the time; form fields of a POST are added to the parameters in the URL."""
    try:
        text = "&".join(filter(None, (request.query, request.body.decode("ascii"))))
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError as e:
        raise _QueryError(400, "bad_data", "the parameters are not those of a URL or a form: send query=…") from e
    try:
        selector = parse_query(fields.get("query", [""])[0])
    except QueryExpressionError as e:
        raise _QueryError(400, "bad_data", f'invalid parameter "query": {e}') from e
    return selector, _time(fields["time"][0]) if "time" in fields else None


def _time(text: str) -> float:
    """Return the Unix seconds that a number or an RFC 3339 time states, the two forms that Prometheus accepts."""
    for read in (float, seconds_with_offset):
        try:
            time = read(text)
        except (ValueError, OverflowError):
            continue
        if math.isfinite(time):
            return time
    raise _QueryError(400, "bad_data", f'invalid parameter "time": cannot parse {text[:40]!r} to a valid timestamp')


def _answer(snapshot: NodesSnapshot, selector: UtilizationSelector, limits: Limits, time: float) -> Response:
    if selector.resource is None and not limits:
        raise _QueryError(400, "bad_data", _NO_LIMITS)
    if snapshot.loads is None:
        raise _unavailable("there is no data yet: try again after the next refresh")
    if snapshot.loads.window_end - time > _LOOKBACK_SECONDS:
        raise _QueryError(400, "bad_data", 'invalid parameter "time": only the current load can be queried here')
    if time - snapshot.loads.window_end > _LOOKBACK_SECONDS:
        raise _unavailable("the newest data is more than five minutes old: see the log about Prometheus")
    nodes = snapshot.columns.names or snapshot.loads.nodes
    values = _values(snapshot.loads, nodes, selector, limits)
    measured = np.flatnonzero(~np.isnan(values))
    if not len(measured):
        raise _unavailable(_missing_text(nodes, selector))
    result = [
        {"metric": {"instance": name}, "value": (snapshot.loads.window_end, repr(value))}
        for name, value in zip(
            (nodes[row] for row in measured.tolist()), np.clip(values[measured], 0.0, 1.0).tolist(), strict=True
        )
    ]
    return Response(200, json_line({"status": "success", "data": {"resultType": "vector", "result": result}}))


def _values(loads: LoadSnapshot, nodes: Sequence[str], selector: UtilizationSelector, limits: Limits) -> Floats:
    if selector.resource is not None:
        return _ratios(loads, nodes, selector.resource, selector)
    shares = [_ratios(loads, nodes, resource, selector) / limit for resource, limit in limits.items()]
    # A node without a measurement of one of them has no sample: it might be hot because of that one.
    found: Floats = np.maximum.reduce(shares)
    return found


def _ratios(loads: LoadSnapshot, nodes: Sequence[str], resource: LoadResource, selector: UtilizationSelector) -> Floats:
    load = loads.resources.get(resource)
    if load is None:
        return np.full(len(nodes), np.nan)
    return rearranged_rows(load.measured_values(selector.window, selector.stat), rows_in(loads.index, nodes))


def _missing_text(missing: Sequence[str], selector: UtilizationSelector) -> str:
    what = f"{selector.resource or 'cpu and memory'} {STATS[selector.stat]} over {WINDOW_NAMES[selector.window]}"
    if not missing:
        return f"no node is known, so there is no {what}"
    return f"there is no {what} of {first_names(missing, _NAMED)}: see /nodes/unmapped and tidewatch_node_verdicts"


def _unavailable(message: str) -> _QueryError:
    return _QueryError(503, "unavailable", message)
