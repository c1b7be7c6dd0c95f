"""A server that does exactly what a test tells it, byte by byte, for clients that must survive bad servers.

Only the query for its time, which a client of Prometheus sometimes sends too, is answered here without being recorded.
"""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

_PATIENCE_SECONDS = 30.0
_NO_TIME = b'{"status":"success","data":{"resultType":"vector","result":[]}}'
"""The answer to the query for the time: none, since tests give clients times of their own."""


@dataclass(frozen=True, slots=True)
class RawRequest:
    """A request as it was received."""

    method: str
    target: str
    headers: dict[str, str]
    """Headers with their names in lower case."""
    body: bytes

    @property
    def is_for_time(self) -> bool:
        """Return whether a client asks for the time on the server's clock."""
        parameters = parse_qs(f"{urlsplit(self.target).query}&{self.body.decode(errors='replace')}")
        return parameters.get("query") == ["vector(time())"] and "time" not in parameters


class Peer:
    """One accepted connection."""

    def __init__(self, sock: socket.socket, server: RawServer, number: int) -> None:
        self.number = number
        """The number of the connection; 0 for the first that the server accepted."""
        self._sock = sock
        self._server = server
        self._input = sock.makefile("rb")

    def read(self) -> RawRequest | None:
        """Read one request and record it in the server's list; None if the client has closed."""
        while (request := self._read()) is not None and request.is_for_time:
            self.answer(_NO_TIME)
        if request is not None:
            self._server.requests.append(request)
        return request

    def _read(self) -> RawRequest | None:
        line = self._input.readline().decode()
        if not line:
            return None
        method, target, version = line.split()
        assert version == "HTTP/1.1"
        headers: dict[str, str] = {}
        while (line := self._input.readline().decode()) != "\r\n":
            name, value = line.rstrip("\r\n").split(": ", 1)
            assert name.lower() not in headers, f"{name} is sent twice"
            headers[name.lower()] = value
        return RawRequest(method, target, headers, self._input.read(int(headers.get("content-length", "0"))))

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    def answer(self, body: bytes, status: str = "200 OK", **headers: str) -> None:
        """Send a whole answer; underscores in names of headers become hyphens."""
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "", ""]).encode() + body)

    def drip(self, data: bytes, seconds: float = 0.05) -> None:
        """Send byte by byte, until the client closes or the test is over."""
        for byte in data:
            if self._server.over.wait(seconds):
                return
            self.send(bytes([byte]))

    def hang(self) -> None:
        """Do nothing until the test is over."""
        self._server.over.wait(_PATIENCE_SECONDS)

    def reset(self) -> None:
        """Close the connection with a TCP reset."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close()

    def close(self) -> None:
        self._input.close()
        self._sock.close()


@dataclass(slots=True)
class RawServer:
    """The running server, as a test sees it."""

    url: str
    requests: list[RawRequest] = field(default_factory=list)
    connections: int = 0
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def raw_server(script: Callable[[Peer], None], tls: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    """Run `script` for each connection, in a thread of its own; the connection is closed when the script returns."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = RawServer(f"{'https' if tls else 'http'}://127.0.0.1:{port}")
        threads: list[threading.Thread] = []

        def serve(sock: socket.socket, number: int) -> None:
            sock.settimeout(_PATIENCE_SECONDS)
            with sock, suppress(OSError):
                peer = Peer(tls.wrap_socket(sock, server_side=True) if tls else sock, server, number)
                try:
                    script(peer)
                finally:
                    peer.close()

        def accept() -> None:
            with suppress(OSError):
                while True:
                    sock, _ = listener.accept()
                    threads.append(threading.Thread(target=serve, args=(sock, server.connections), daemon=True))
                    server.connections += 1
                    threads[-1].start()

        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        try:
            yield server
        finally:
            server.over.set()
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join(_PATIENCE_SECONDS)


def answering(body: bytes, status: str = "200 OK", **headers: str) -> Callable[[Peer], None]:
    """Return a script that gives each request of a connection the same answer."""

    def script(peer: Peer) -> None:
        while peer.read() is not None:
            peer.answer(body, status, **headers)

    return script
