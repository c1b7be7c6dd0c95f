"""Clients that do not read, or do not finish their requests: `python -m benchmarks.slow_clients PLAN`.

`readers` request a list and never read the answer; `heads` present no certificate and send a head that never ends.
All of them connect again when they are cut off, and after some seconds in any case. It is a process with one thread.
"""

from __future__ import annotations

import select
import socket
import ssl
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from benchmarks.aggregator_client import Endpoint  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Callable

_GONE = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
_LINE = b"X-Endless: " + 1000 * b"a" + b"\r\n"
_TURN_SECONDS = 0.05
_MOST_HANDSHAKES = 4
"""Limit on the new connections in one turn: more would only measure handshakes."""


class SlowClientsPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The clients and what they do. Moments are monotonic seconds, which all processes of a machine share."""

    endpoint: Endpoint
    kind: Literal["readers", "heads"]
    count: int
    path: str
    segment_bytes: int
    """TCP's maximum segment size, which decides how much a server's kernel takes at once."""
    receive_bytes: int
    again_seconds: float
    """The time after which each client connects again."""
    end_at: float
    result_file: str


class SlowClientsOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The connections and requests of the clients."""

    connections: int
    """The number of opened connections."""
    cut_off: int
    """The number of connections that the server ended."""
    most_at_once: int
    """The largest number of connections that had sent everything and were still open."""


class _Client:
    """One client and its current connection."""

    def __init__(self, again_at: float) -> None:
        self.sock: ssl.SSLSocket | None = None
        self.is_greeted = False
        self.again_at = again_at

    def close(self) -> None:
        if self.sock is not None:
            self.sock.close()
        self.sock, self.is_greeted = None, False


class SlowClients:
    """All clients, in one loop."""

    def __init__(self, plan: SlowClientsPlan) -> None:
        self._plan = plan
        self._context = ssl.create_default_context(cafile=plan.endpoint.ca_file)
        if plan.kind == "readers":
            self._context.load_cert_chain(plan.endpoint.certificate_file, plan.endpoint.key_file)
        self._poll = select.epoll()
        now = time.monotonic()
        self._clients = [_Client(now) for _ in range(plan.count)]
        self._by_descriptor: dict[int, _Client] = {}
        self._opened = self._cut_off = self._most = 0
        self._head = (
            f"GET {plan.path} HTTP/1.1\r\nHost: localhost\r\n"
            "X-Remote-User: system:serviceaccount:shop:default\r\nX-Remote-Group: system:masters\r\n"
        ).encode()

    def run(self, is_enough: Callable[[SlowClientsOutcome], bool] = lambda _: False) -> SlowClientsOutcome:
        """Run the clients until the plan ends, or until `is_enough` returns True, and return the outcome."""
        while (now := time.monotonic()) < self._plan.end_at and not is_enough(self._outcome()):
            due = [client for client in self._clients if client.again_at <= now]
            for client in due[:_MOST_HANDSHAKES]:
                self._come(client, now)
            for descriptor, events in self._poll.poll(_TURN_SECONDS):
                client = self._by_descriptor[descriptor]
                try:
                    self._advance(client, events)
                except OSError:
                    self._is_cut(client)
            self._most = max(self._most, sum(client.is_greeted for client in self._clients))
        for client in self._clients:
            client.close()
        return self._outcome()

    def _outcome(self) -> SlowClientsOutcome:
        return SlowClientsOutcome(connections=self._opened, cut_off=self._cut_off, most_at_once=self._most)

    def _come(self, client: _Client, now: float) -> None:
        self._leave(client)
        client.again_at = now + self._plan.again_seconds
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._plan.receive_bytes)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, self._plan.segment_bytes)
        try:
            sock.connect(("127.0.0.1", self._plan.endpoint.port))
        except OSError:
            sock.close()
            return
        self._opened += 1
        sock.settimeout(0)
        client.sock = self._context.wrap_socket(sock, server_hostname="localhost", do_handshake_on_connect=False)
        self._by_descriptor[client.sock.fileno()] = client
        self._poll.register(client.sock.fileno(), select.EPOLLIN | select.EPOLLOUT | _GONE)

    def _advance(self, client: _Client, events: int) -> None:
        assert client.sock is not None
        if events & _GONE:
            raise ConnectionResetError
        try:
            if not client.is_greeted:
                client.sock.do_handshake()
                client.is_greeted = True
                client.sock.send(self._head + (b"\r\n" if self._plan.kind == "readers" else b""))
                wanted = 0 if self._plan.kind == "readers" else select.EPOLLOUT
                self._poll.modify(client.sock.fileno(), wanted | _GONE)
            elif self._plan.kind == "heads":
                client.sock.send(_LINE)
        except ssl.SSLWantReadError:
            self._poll.modify(client.sock.fileno(), select.EPOLLIN | _GONE)
        except ssl.SSLWantWriteError:
            self._poll.modify(client.sock.fileno(), select.EPOLLOUT | _GONE)

    def _is_cut(self, client: _Client) -> None:
        self._cut_off += 1
        self._leave(client)

    def _leave(self, client: _Client) -> None:
        if client.sock is not None:
            del self._by_descriptor[client.sock.fileno()]
            self._poll.unregister(client.sock.fileno())
            client.close()


def main() -> None:
    """Carry out the plan and write the outcome."""
    plan = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=SlowClientsPlan)
    Path(plan.result_file).write_bytes(msgspec.json.encode(SlowClients(plan).run()))


if __name__ == "__main__":
    main()
