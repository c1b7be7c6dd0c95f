"""Asks a Prometheus since when it has collected samples; it may lack earlier data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.sources.deadlines import Deadline
from adapter.foundation.sources.prometheus.errors import UnexpectedAnswerError
from adapter.foundation.sources.prometheus.transport.requests import ApiRequest
from adapter.foundation.time.timestamps import seconds_with_offset

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.transport.server import Server

_PATH = "/api/v1/status/runtimeinfo"


@dataclass(frozen=True, slots=True)
class Started:
    """When a Prometheus started, in Unix seconds of its own clock."""

    process: float
    """Start of the process; after that, it reads its stored data, which may take many minutes."""
    configured: float
    """When it last loaded its configuration. It first does so once it is ready, and again with each reload.

    Minus infinity for a server without data from before its start, because nothing can be missing then.
    """


class _Data(msgspec.Struct):
    start: str = msgspec.field(name="startTime")
    configured: str = msgspec.field(default="", name="lastConfigTime")


class _Answer(msgspec.Struct):
    data: _Data


_ANSWER = decoder_of(_Answer)


def ask_started(server: Server, timeout_seconds: float) -> Started:
    """Return when the server started.

    Raises PrometheusError, even if the server only lacks this path, like servers that implement only the query API.
    """
    answer = server.success(_PATH, server.exchange(_PATH, ApiRequest(_PATH), Deadline(timeout_seconds)))
    try:
        data = _ANSWER.decode(answer.body).data
        process = seconds_with_offset(data.start)
        configured = seconds_with_offset(data.configured) if data.configured else process
    except (msgspec.DecodeError, ValueError, OverflowError, RecursionError) as e:
        raise UnexpectedAnswerError(_PATH, "the answer does not say when the server started") from e
    return Started(process, max(process, configured))
