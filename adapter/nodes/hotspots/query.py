"""`/api/v1/query` for the descheduler: the utilisation of every node, as Prometheus would answer.

The descheduler wants a vector whose label `instance` names the node, values from 0 to 1, and a sample of every node.
The values are never debounced.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

import numpy as np

from adapter.nodes.hotspots.selector import QueryExpressionError, parse_query
from adapter.nodes.model.loads import STATS, WINDOW_NAMES
from adapter.web.http import Response, json_line
from adapter.web.routes import Route

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.nodes.hotspots.selector import UtilizationSelector
    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.board import Board
    from adapter.nodes.model.loads import LoadSnapshot
    from adapter.web.http import Request

_LARGEST_BODY_BYTES: Final = 64 * 1024
_MOST_FIELDS: Final = 20
_LOOKBACK_SECONDS: Final = 300.0
"""How old samples may be that an instant query returns; Prometheus's default."""
_NAMED: Final = 3


class _QueryError(Exception):
    """A request that cannot be answered, with what Prometheus calls its type."""

    def __init__(self, status: int, error_type: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.error_type = error_type


def query_routes(board: Callable[[], Board], now: Callable[[], float]) -> tuple[Route, ...]:
    """Return the route of `/api/v1/query`; `now` returns Unix seconds."""

    def handle(request: Request) -> Response:
        try:
            selector, time = _asked(request)
            return _answer(board(), selector, now() if time is None else time)
        except _QueryError as e:
            document = {"status": "error", "errorType": e.error_type, "error": str(e)}
            return Response(e.status, json_line(document))

    return (Route("/api/v1/query", handle, ("GET", "POST"), _LARGEST_BODY_BYTES),)


def _asked(request: Request) -> tuple[UtilizationSelector, float | None]:
    """Return what is asked for and at which time; the form of a POST adds to the parameters of the target."""
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
    """Return Unix seconds of a number or an RFC 3339 time, the two forms that Prometheus accepts."""
    for read in (float, _rfc3339):
        try:
            time = read(text)
        except (ValueError, OverflowError):
            continue
        if math.isfinite(time):
            return time
    raise _QueryError(400, "bad_data", f'invalid parameter "time": cannot parse {text[:40]!r} to a valid timestamp')


def _rfc3339(text: str) -> float:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError("a time without an offset means another moment on every machine")
    return time.timestamp()


def _answer(board: Board, selector: UtilizationSelector, time: float) -> Response:
    if board.loads is None:
        raise _unavailable("there is no data yet: ask again after the next refresh")
    if board.loads.window_end - time > _LOOKBACK_SECONDS:
        raise _QueryError(400, "bad_data", 'invalid parameter "time": only the present can be asked for here')
    if time - board.loads.window_end > _LOOKBACK_SECONDS:
        raise _unavailable("the newest data is more than five minutes old: see the log about Prometheus")
    nodes = board.columns.names or board.loads.nodes
    values = _values(board.loads, nodes, selector)
    missing = [nodes[row] for row in np.flatnonzero(np.isnan(values)).tolist()]
    if missing or not nodes:
        raise _unavailable(_missing_text(missing, selector))
    result = [
        {"metric": {"instance": name}, "value": (board.loads.window_end, repr(value))}
        for name, value in zip(nodes, np.clip(values, 0.0, 1.0).tolist(), strict=True)
    ]
    return Response(200, json_line({"status": "success", "data": {"resultType": "vector", "result": result}}))


def _values(loads: LoadSnapshot, nodes: Sequence[str], selector: UtilizationSelector) -> Floats:
    load = loads.resources.get(selector.resource)
    if load is None:
        return np.full(len(nodes), np.nan)
    by_row = load.stats[selector.window, selector.stat]
    rows = np.fromiter((loads.index.get(name, -1) for name in nodes), np.intp, len(nodes))
    return np.where(rows >= 0, by_row[rows], np.nan) if len(by_row) else np.full(len(nodes), np.nan)


def _missing_text(missing: Sequence[str], selector: UtilizationSelector) -> str:
    what = f"{selector.resource} {STATS[selector.stat]} over {WINDOW_NAMES[selector.window]}"
    if not missing:
        return f"no node is known, so there is no {what}"
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    return f"there is no {what} of {', '.join(missing[:_NAMED])}{more}: see /nodes/unmapped and tidewatch_node_verdicts"


def _unavailable(message: str) -> _QueryError:
    return _QueryError(503, "unavailable", message)
