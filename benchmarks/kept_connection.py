"""One client that sends requests repeatedly on a connection that is kept alive, and how long the answers take.

The load is closed: the next request is sent when the previous answer is complete. This is how kube-scheduler sends
requests, since it places one pod after another, and how the plugins read `/watcher`.
"""

from __future__ import annotations

import gc
import socket
import time
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING, Self

from benchmarks.judging import WrongAnswerError
from benchmarks.tally import Tally

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.report import Row
    from benchmarks.tally import Outcome

_TIMEOUT_SECONDS = 10.0
_HEAD_BYTES = 65536
_END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request."""

    status: int
    head: bytes
    """Status line and headers, in lower case."""
    body: bytes


class _IdleConnectionClosedError(ConnectionError):
    """The server closed a connection between two requests, as HTTP allows it to do at any time."""


class KeptConnection:
    """A connection to a port of this machine. It is opened again if the server closed it between two requests."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Connect; raises OSError."""
        self._port, self._tls = port, tls
        self._socket = _connected(port, tls)
        self._is_used = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: bytes) -> Answer:
        """Send a whole request and return the answer. Raises OSError."""
        try:
            return self._answer(request)
        except _IdleConnectionClosedError:
            self._socket.close()
            self._socket, self._is_used = _connected(self._port, self._tls), False
            return self._answer(request)

    def _answer(self, request: bytes) -> Answer:
        """Send a request and return its answer. Raises _IdleConnectionClosedError and other errors of OSError."""
        received = self._first_piece(request)
        while (end := received.find(_END_OF_HEAD)) < 0:
            received += self._some(_HEAD_BYTES)
        head = bytes(received[:end]).lower()
        length = int(head.partition(b"\r\ncontent-length:")[2].split(b"\r\n", 1)[0] or 0)
        body = bytearray(length)
        first = received[end + len(_END_OF_HEAD) :]
        body[: len(first)] = first
        view, filled = memoryview(body), len(first)
        while filled < length:
            count = self._socket.recv_into(view[filled:])
            if not count:
                raise ConnectionResetError("the server closed the connection within an answer")
            filled += count
        self._is_used = True
        return Answer(int(head[9:12]), head, bytes(body))

    def _first_piece(self, request: bytes) -> bytearray:
        """Send a request and return the beginning of its answer.

        Raises _IdleConnectionClosedError if there is none on a connection that has answered before: the server closed
        the connection before it saw the request. Raises other errors of OSError.
        """
        try:
            self._socket.sendall(request)
            return bytearray(self._some(_HEAD_BYTES))
        except ConnectionError as error:
            if self._is_used:
                raise _IdleConnectionClosedError(str(error)) from error
            raise

    def _some(self, most: int) -> bytes:
        data = self._socket.recv(most)
        if not data:
            raise ConnectionResetError("the server closed the connection")
        return data


def _connected(port: int, tls: ssl.SSLContext | None) -> socket.socket:
    """Return a new connection. Raises OSError."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection if tls is None else tls.wrap_socket(connection, server_hostname="localhost")


def get(target: str, **headers: str) -> bytes:
    """Return a GET request; `If_None_Match` becomes If-None-Match."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode()


def post(target: str, body: bytes) -> bytes:
    """Return a POST request with a JSON body."""
    head = f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def measured(
    port: int,
    requests: Sequence[bytes],
    judge: Callable[[Answer], None],
    count: int,
    warm_up: int = 20,
    seconds: float = 0.0,
    tls: ssl.SSLContext | None = None,
) -> Outcome:
    """Send the requests in turn after the warm-up: at least `count` requests, and for at least `seconds` seconds.

    `judge` raises WrongAnswerError. Raises OSError.
    """
    began = time.monotonic()
    # Connect last: a collection of a large process may take longer than a server waits for the first byte.
    with _without_collector(), KeptConnection(port, tls) as connection:
        for request in islice(cycle(requests), warm_up):
            connection.ask(request)
        measure_from = time.monotonic()
        tally = Tally(began, measure_from)
        for number, request in enumerate(cycle(requests)):
            sent = time.monotonic()
            if number >= count and sent - measure_from >= seconds:
                break
            answer = connection.ask(request)
            latency = time.monotonic() - sent
            try:
                judge(answer)
            except WrongAnswerError as error:
                tally.failed(sent, str(error))
            else:
                tally.answered(sent, latency, 0.0)
        return tally.outcome(time.monotonic() - measure_from)


def row_of(load: str, outcome: Outcome, size: int) -> Row:
    """Return the row of a report; `size` is that of an answer's body in bytes."""
    return {
        "load": load,
        "errors": outcome.errors,
        "requests": outcome.requests,
        "p50_ms": outcome.p50_ms,
        "p99_ms": outcome.p99_ms,
        "max_ms": outcome.max_ms,
        "rate_per_second": outcome.rate_per_second,
        "bytes": size,
    }


@contextmanager
def _without_collector() -> Iterator[None]:
    """Disable the garbage collector, so that its collections do not count as latency."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
