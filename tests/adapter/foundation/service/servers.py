"""Servers under test, each in a process of its own, and raw clients for them."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from demo.machine.certificates import Authority
from tests.support import forked
from tests.support.waiting import until

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.certificates import KeyPair
    from demo.machine.processes import ManagedProcess

PATIENCE = 20.0
"""Seconds after which a client of a test gives up."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """The certificates that a server presents and trusts."""

    authority: Authority
    server: KeyPair
    clients: Authority
    client: KeyPair


def make_certificates(folder: Path) -> Certificates:
    authority, clients = Authority(folder / "serving"), Authority(folder / "clients", "clients", intermediate=True)
    return Certificates(authority, authority.server(), clients, clients.client("front-proxy-client"))


class Server:
    """A running example server."""

    def __init__(self, process: ManagedProcess, certificates: Certificates) -> None:
        self.process = process
        self.certificates = certificates

    @property
    def log(self) -> str:
        return self.process.log_path.read_text()

    @property
    def port(self) -> int:
        return self._port_in(r" serving address=https?://\S+:(\d+) ")

    @property
    def plain_port(self) -> int:
        return self._port_in(r"metrics and health are served address=\S+:(\d+)")

    def client_context(self, client: KeyPair | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.certificates.server.ca_file)
        if client:
            context.load_cert_chain(client.certificate_file, client.key_file)
        return context

    def tcp(self) -> socket.socket:
        return tcp_to(self.port)

    def connect(self, context: ssl.SSLContext | None = None, session: ssl.SSLSession | None = None) -> ssl.SSLSocket:
        return (context or self.client_context()).wrap_socket(self.tcp(), server_hostname="localhost", session=session)

    def plain(self, path: str) -> tuple[int, str]:
        """GET from the plain port."""
        connection = http.client.HTTPConnection("127.0.0.1", self.plain_port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()

    def _port_in(self, pattern: str) -> int:
        return int(re.findall(pattern, self.log)[-1])


@contextlib.contextmanager
def running_server(
    folder: Path, certificates: Certificates, *, until_serving: bool = True, **settings: object
) -> Iterator[Server]:
    """Start a server with settings of `example_server`, and kill it in the end."""
    everything = json.dumps(settings_of(certificates, **settings))
    module = "tests.adapter.foundation.service.example_server"
    with forked.start(module, everything, log_path=folder / "server.log", name="example-server") as process:
        server = Server(process, certificates)
        if until_serving:
            process.wait_until(lambda: " serving address=" in server.log, PATIENCE)
        yield server
        process.kill()


def settings_of(certificates: Certificates, **settings: object) -> dict[str, object]:
    """Return the argument of `example_server`."""
    return {
        "certificate": str(certificates.server.certificate_file),
        "key": str(certificates.server.key_file),
        "client_cas": [str(certificates.clients.ca_file)],
        **settings,
    }


def ask(port: int, path: str, method: str = "GET") -> tuple[int, bytes]:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def tcp_to(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    # As Go's clients do. Without it each first request waits for the acknowledgement of the handshake, 40 ms.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def get(sock: socket.socket, path: str = "/facts", *header_lines: str) -> tuple[int, dict[str, Any]]:
    """Send a request over an open connection and return status and facts."""
    send_head(sock, path, *header_lines)
    status, body = read_answer(sock)
    return status, json.loads(body) if body.startswith(b"{") else {}


def send_head(sock: socket.socket, path: str, *header_lines: str) -> None:
    head = "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *header_lines])
    sock.sendall(f"{head}\r\n\r\n".encode("latin-1"))


def read_answer(sock: socket.socket) -> tuple[int, bytes]:
    """Read one answer, and nothing of what follows it."""
    head = read_head(sock)
    length = int(re.findall(rb"(?i)content-length: (\d+)", head)[0])
    body = b""
    while len(body) < length:
        body += sock.recv(length - len(body))
    return int(head.split(b" ", 2)[1]), body


def read_head(sock: socket.socket) -> bytes:
    """Read status line and headers of an answer, and nothing of what follows them."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = sock.recv(1)
        if not byte:
            raise ConnectionError(f"the server closed the connection after {head!r}")
        head += byte
    return head


def is_closed(sock: socket.socket) -> bool:
    """Return whether the server closes the connection before it sends anything."""
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


NEVER = dict.fromkeys(("handshake", "head", "idle", "body", "body_pace", "send", "pace", "linger"), 3600.0)
"""Deadlines of an hour, for tests that must not pass because of a deadline."""


def connections(server: Server, stage: str) -> float:
    """Return how many connections are in a stage."""
    return metric(server, f'example_connections{{stage="{stage}"}}')


def dropped(server: Server, reason: str) -> float:
    """Return how many connections were cut off for a reason."""
    return metric(server, f'example_connections_dropped_total{{reason="{reason}"}}')


def metric(server: Server, sample: str) -> float:
    lines = [line for line in server.plain("/metrics")[1].splitlines() if line.startswith(sample)]
    return float(lines[0].rsplit(" ", 1)[1]) if lines else 0.0


def ended_with(server: Server, number: signal.Signals) -> int:
    server.process.send(number)
    return server.process.wait(PATIENCE)


def wait_for_plain(server: Server, path: str, status: int) -> None:
    """Wait until the plain port answers with this status."""

    def answers() -> bool:
        try:
            return server.plain(path)[0] == status
        except OSError:
            return False

    until(answers)
