"""Since when a Prometheus collects samples, as it tells itself: before that, what it lacks may well have been there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from adapter.sources.deadlines import Deadline
from adapter.sources.prometheus.errors import UnexpectedAnswerError
from adapter.sources.prometheus.transport import HttpRequest

if TYPE_CHECKING:
    from adapter.sources.prometheus.server import Server

_PATH = "/api/v1/status/runtimeinfo"
_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Started:
    """When a Prometheus began, in Unix seconds by its own clock."""

    process: float
    """The start of its process; what it had stored is read after that, which may take many minutes."""
    configured: float
    """When it took its configuration in last: not before it was ready, and again with each reload.

    Minus infinity for a server that has nothing from before its start: so nothing that was there can be missing.
    """


class _Data(msgspec.Struct):
    start: str = msgspec.field(name="startTime")
    configured: str = msgspec.field(default="", name="lastConfigTime")


class _Answer(msgspec.Struct):
    data: _Data


def ask_started(server: Server, timeout_seconds: float) -> Started:
    """Return when the server began.

    Raises PrometheusError, also where the server has no such path, as those that speak Prometheus's API alone.
    """
    endpoint = server.endpoint
    query = urlencode(endpoint.parameters)
    target = f"{endpoint.path}{_PATH}{'?' if query else ''}{query}"
    request = HttpRequest("GET", target, headers={}, body=None, max_bytes=_MOST_BYTES)
    answer = server.success(_PATH, server.exchange(_PATH, request, Deadline(timeout_seconds)))
    try:
        data = msgspec.json.decode(answer.body, type=_Answer).data
        process = _moment(data.start)
        configured = _moment(data.configured) if data.configured else process
    except (msgspec.DecodeError, ValueError, OverflowError, RecursionError) as e:
        raise UnexpectedAnswerError(_PATH, "the answer does not tell when the server started") from e
    return Started(process, max(process, configured))


def _moment(text: str) -> float:
    """Return Unix seconds of an RFC 3339 time; raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return moment.timestamp()
