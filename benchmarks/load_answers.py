"""A stand-in for Prometheus in another process, whose work is not counted: it answers each query with one vector."""

from __future__ import annotations

import multiprocessing
import time
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from multiprocessing.connection import Connection


@contextmanager
def load_answers(series: Mapping[str, int]) -> Iterator[str]:
    """Answer each of these queries with its number of series, in another process; yield the URL."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, series), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


def _serve(port: Connection, series: Mapping[str, int]) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Answers, series))
    port.send(server.server_port)
    server.serve_forever()


class _Answers(BaseHTTPRequestHandler):
    """Answers each query with one vector, whose loads rise and fall with time."""

    protocol_version = "HTTP/1.1"

    def __init__(self, series: Mapping[str, int], *arguments: object) -> None:
        self._series = series
        super().__init__(*arguments)  # type: ignore[arg-type] # what the server hands on

    def do_POST(self) -> None:
        """Answer a query whose parameters are in the body."""
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
        self._reply(parse_qs(body))

    def do_GET(self) -> None:
        """Answer a query whose parameters are in the path."""
        self._reply(parse_qs(urlsplit(self.path).query))

    def log_message(self, *_: object) -> None:
        """Write no log."""

    def _reply(self, parameters: dict[str, list[str]]) -> None:
        query = parameters.get("query", [""])[0]
        # As in Prometheus, this is the requested time, however long the answer takes.
        now = float(parameters.get("time", [str(time.time())])[0])
        result = [
            {
                "metric": {"namespace": f"ns-{number % 50}", "deployment": f"{query.replace('_', '-')}-{number}"},
                "value": [now, str(100.0 + (number * 7 + int(now) // 10 * 3) % 50)],
            }
            for number in range(self._series.get(query, 0))
        ]
        body = msgspec.json.encode({"status": "success", "data": {"resultType": "vector", "result": result}})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
