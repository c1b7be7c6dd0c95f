"""A proxy before a real Prometheus that records every request, whatever the program says about it."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

_ANSWER_SECONDS = 60.0
_NO_TIME = b'{"status":"error","errorType":"bad_data","error":"parameter time is missing"}'


@dataclass(frozen=True, slots=True)
class ProxiedRequest:
    """A request to the API, with its parameters in the URL or in the form."""

    path: str
    parameters: tuple[tuple[str, str], ...]

    def all(self, name: str) -> list[str]:
        """Return the values of a parameter."""
        return [value for found, value in self.parameters if found == name]

    @property
    def is_of_present(self) -> bool:
        """Return whether it is an instant query without a time, which the server evaluates at its own time."""
        return self.path.endswith("/api/v1/query") and not self.all("time")


@dataclass(slots=True)
class RecordingProxy:
    """The running proxy."""

    url: str = ""
    requests: list[ProxiedRequest] = field(default_factory=list)
    authorization: str = ""
    """The header value that each request must have; empty if none is required."""
    refusals: int = 0
    """How many requests had another one."""
    seconds_ahead: float = 0.0
    """How far the clock that dates the proxy's answers is ahead of this machine's."""
    server_seconds_ahead: float = 0.0
    """How far the clock of the server behind the proxy is ahead of this machine's; queries without a time use it."""
    no_time: bool = False
    """Whether queries without a time are refused."""
    latency_seconds: float = 0.0
    """Of how long ago the time of an answer is that bears the current one, as with VictoriaMetrics' `latencyOffset`."""

    def own_answer(self, request: ProxiedRequest) -> tuple[int, bytes] | None:
        """Return the proxy's own answer to a query without a time; None if the server behind is to answer it."""
        if not request.is_of_present or not (self.no_time or self.latency_seconds):
            return None
        if self.no_time:
            return 400, _NO_TIME
        now = time.time()
        result = [{"metric": {}, "value": [now, str(now - self.latency_seconds)]}]
        document = {"status": "success", "data": {"resultType": "vector", "result": result}}
        return 200, json.dumps(document).encode()

    def timed(self, request: ProxiedRequest, target: str) -> str:
        """Return the target with the time at which the server behind would evaluate the request on its own clock."""
        if not request.is_of_present:
            return target
        return f"{target}{'&' if '?' in target else '?'}time={time.time() + self.server_seconds_ahead}"


class _Server(ThreadingHTTPServer):
    """Serves with or without TLS, and logs nothing when a client ends the connection."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        if context is not None:
            # The handshake is the handler's, so that a client that ends it holds up nobody else.
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, *_: object) -> None:
        pass


@contextmanager
def recording_proxy(behind: str, context: ssl.SSLContext | None = None) -> Iterator[RecordingProxy]:
    """Run a proxy in front of a server, on a free port of the loopback interface.

    With a context it speaks TLS, and each request has a connection of its own, so that a change of the context is seen
    by the next request.
    """
    proxy = RecordingProxy()
    connection = "keep-alive" if context is None else "close"

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._pass_on(None)

        def do_POST(self) -> None:
            self._pass_on(self.rfile.read(int(self.headers["Content-Length"])))

        def _pass_on(self, body: bytes | None) -> None:
            address = urlsplit(self.path)
            form = (body or b"").decode()
            parameters = [*parse_qsl(address.query), *parse_qsl(form)]
            request = ProxiedRequest(address.path, tuple(parameters))
            proxy.requests.append(request)
            if proxy.authorization not in ("", self.headers["Authorization"]):
                proxy.refusals += 1
                self._answer(401, f"not accepted: {self.headers['Authorization']}".encode())
                return
            if (own := proxy.own_answer(request)) is not None:
                self._answer(*own)
                return
            try:
                with urllib.request.urlopen(
                    f"{behind}{proxy.timed(request, self.path)}", body, _ANSWER_SECONDS
                ) as answer:
                    self._answer(answer.status, answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    self._answer(error.code, error.read())

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", connection)
            self.end_headers()
            self.wfile.write(body)

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string((timestamp or time.time()) + proxy.seconds_ahead)

        def log_message(self, *_: object) -> None:
            pass

    server = _Server(Handler, context)
    thread = threading.Thread(target=server.serve_forever, name="recording proxy", daemon=True)
    thread.start()
    try:
        proxy.url = f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_address[1]}"
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
