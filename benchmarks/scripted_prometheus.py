"""A stand-in for Prometheus with a configurable delay, for benchmarks of how tenants affect each other.

A real Prometheus answers small queries within a millisecond, and cannot be made to take 0.3 s for each. This one knows
the pods of some namespaces, refuses queries that touch a namespace with duplicate series in its join, and records the
queries.
"""

from __future__ import annotations

import re
import time
import urllib.parse
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING

import msgspec

from demo.machine.http_answers import AnswerHandler, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

METRIC = "load"
PATH_LABEL = "path"
_NAMESPACE = re.compile(r'namespace="([^"]+)"')
_PATH = re.compile(rf'{PATH_LABEL}="(\d+)"')
_DUPLICATE = "found duplicate series for the match group on the right hand-side of the operation"
_AGE = "timestamp("
"""Part of the query with which the recommender asks for the age of a load's newest sample; here, no sample is old."""
_PAST_SECONDS = 30.0
"""Age of a query's time from which it is a cross-check and not a refresh."""


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A query that was received."""

    text: str
    at: float
    """Time of arrival in monotonic seconds."""
    is_cross_check: bool

    @property
    def is_wide(self) -> bool:
        """Whether the query selects all namespaces."""
        return 'namespace!=""' in self.text


@dataclass(slots=True)
class Script:
    """The answers of the stand-in, and the queries that it received. Thread-safe."""

    pods: Mapping[str, int]
    """Number of pods by namespace."""
    seconds: float = 0.0
    """Duration of each query in seconds."""
    doubled: frozenset[str] = frozenset()
    load_at: Callable[[float], float] = float
    """The value at a time in Unix seconds, for range queries, which have one series without labels."""
    asked: list[AskedQuery] = field(default_factory=list)

    def answer(self, query: str, moment: float) -> tuple[int, bytes]:
        """Return status and body for a query at a time in Unix seconds."""
        self.asked.append(AskedQuery(query, time.monotonic(), is_cross_check=time.time() - moment > _PAST_SECONDS))
        if self.seconds:
            time.sleep(self.seconds)
        if _AGE in query:
            newest = {"metric": {"tidewatch_part": "0"}, "value": [moment, f"{moment:.3f}"]}
            return 200, _vector([newest])
        named = _NAMESPACE.findall(query) or list(self.pods)
        if self.doubled.intersection(named):
            refusal = {"status": "error", "errorType": "execution", "error": _DUPLICATE}
            return 422, msgspec.json.encode(refusal)
        path = _PATH.search(query)
        value = float(path[1]) if path else 0.0
        samples = (
            {"metric": {"namespace": ns, "pod": pod_name(number)}, "value": [moment, f"{value + number / 8}"]}
            for ns in named
            for number in range(self.pods.get(ns, 0))
        )
        return 200, _vector(list(samples))

    def history(self, start: float, end: float, step: float) -> bytes:
        """Return the body for a range query."""
        moments = (start + place * step for place in range(int((end - start) // step) + 1))
        values = [[moment, f"{self.load_at(moment):g}"] for moment in moments]
        data = {"resultType": "matrix", "result": [{"metric": {}, "values": values}]}
        return msgspec.json.encode({"status": "success", "data": data})


def _vector(samples: Sequence[object]) -> bytes:
    return msgspec.json.encode({"status": "success", "data": {"resultType": "vector", "result": samples}})


def pod_name(number: int) -> str:
    """Return the name of a namespace's pod."""
    return f"app{number}-7d9c5b6f48-x0000"


@contextmanager
def scripted_prometheus(script: Script) -> Iterator[str]:
    """Serve a script on a free port of loopback; yield the address."""

    class Handler(_Handler):
        told = script

    server = _Server(("127.0.0.1", 0), Handler)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}"


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: an adapter that shuts down closes its connections during queries."""


class _Handler(AnswerHandler):
    told: Script

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        self._reply(path, dict(urllib.parse.parse_qsl(query)))

    def do_POST(self) -> None:
        self._reply(self.path.partition("?")[0], dict(urllib.parse.parse_qsl(self.request_body().decode())))

    def _reply(self, path: str, parameters: Mapping[str, str]) -> None:
        match path:
            case "/api/v1/query" if METRIC in parameters.get("query", ""):
                status, body = self.told.answer(parameters["query"], float(parameters.get("time", time.time())))
            case "/api/v1/query_range":
                status = 200
                body = self.told.history(*(float(parameters[name]) for name in ("start", "end", "step")))
            case "/api/v1/series":
                labels = {"__name__": METRIC, "namespace": "bank", "pod": pod_name(0)}
                status, body = 200, msgspec.json.encode({"status": "success", "data": [labels]})
            case "/api/v1/status/buildinfo":
                status, body = 200, b'{"status":"success","data":{"version":"3.5.0"}}'
            case _:
                data = b'{"status":"success","data":{"resultType":"vector","result":[]}}'
                status, body = 200, data
        self.answer(body, status=status)
