"""Unauthenticated clients that connect to `tidewatch-adapter nodes`: `python -m benchmarks.unauthenticated_load PLAN`.

Some begin requests whose bodies never end, some send complete large bodies, some scrape metrics and read nothing, and
some send many requests at once. All of them connect again when they are cut off. It is a process with one thread, which
prints what it has delivered once a second.

It only gets processor time that nobody else wants (SCHED_IDLE): it shares a core with the client that measures, and
clients on machines of their own would take no time from kube-scheduler.
"""

from __future__ import annotations

import functools
import socket
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.cores import yield_to_all_others
from benchmarks.kept_connection import get, post

if TYPE_CHECKING:
    from collections.abc import Callable

_TURN_SECONDS = 0.02
_REPORT_SECONDS = 1.0
_BODY_BYTES = 20 * 2**20
_PIECE = bytes(65536)
_KEPT_SCRAPES = 200
"""How many connections with unread metrics are held open at once."""
_FEW_BYTES = 4096


class UnauthenticatedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The unauthenticated clients, and the ports that they connect to.

    Moments are monotonic seconds, which all processes of a machine share.
    """

    port: int
    plain_port: int
    bodies: int
    whole_bodies: int
    """How many clients send bodies of 20 MB, one after another."""
    scrapes_a_second: float
    pipelining: int
    requests_at_once: int
    asking: int
    """How many connections send one request after another."""
    end_at: float


class Delivered(msgspec.Struct, frozen=True, kw_only=True):
    """What the clients have delivered up to a moment, in monotonic seconds."""

    at: float
    connections: int
    """The connections that are open, without those of scrapes."""
    pending: int
    """Those of them that wait for an answer, or for the server to read the rest of a body."""
    requests: int
    """All requests without a body that were sent on these connections."""
    answers: int
    """All answers to these requests."""
    bodies: int
    """All bodies that were begun."""
    scrapes: int
    """All requests for metrics that were sent."""


class _Tally:
    """Counts what is delivered."""

    def __init__(self) -> None:
        self.requests = 0
        self.answers = 0
        self.bodies = 0
        self.scrapes = 0


class _Body:
    """A connection whose request has a body that never ends."""

    is_pending = True

    def __init__(self, port: int, tally: _Tally) -> None:
        self.sock = _connected(port)
        tally.bodies += 1
        head = f"POST /scheduler/filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: {_BODY_BYTES}\r\n\r\n"
        self._left = _BODY_BYTES - 100
        self.sock.send(head.encode())
        self._drip_at = 0.0

    def advance(self) -> None:
        """Send as much as the server accepts, and a byte now and then near the end. Raises OSError when cut off."""
        now = time.monotonic()
        with suppress(BlockingIOError):
            if not self.sock.recv(_FEW_BYTES):
                raise ConnectionResetError
        with suppress(BlockingIOError):
            while self._left > 0:
                self._left -= self.sock.send(_PIECE[: self._left])
            if now >= self._drip_at:
                self.sock.send(b" ")
                self._drip_at = now + 0.5


class _WholeBody:
    """A connection with a complete, large request that kube-scheduler could have sent."""

    is_pending = True

    def __init__(self, port: int, request: bytes, tally: _Tally) -> None:
        self.sock = _connected(port)
        tally.bodies += 1
        self._left = memoryview(request)

    def advance(self) -> None:
        """Send as much as the server accepts, and read its answer. Raises OSError after the answer, or when cut off."""
        with suppress(BlockingIOError):
            while self._left:
                self._left = self._left[self.sock.send(self._left[: len(_PIECE)]) :]
        with suppress(BlockingIOError):
            if b"HTTP/1.1 " in self.sock.recv(_FEW_BYTES):
                raise ConnectionResetError
            self._left = self._left[:0]


class _Pipeline:
    """A connection with many requests at once."""

    def __init__(self, port: int, count: int, tally: _Tally) -> None:
        self.sock = _connected(port)
        self._tally = tally
        self._requests = count * get("/watcher")
        self._count = count
        self._open = 0
        self._tail = b""

    def advance(self) -> None:
        """Read the available data, and send again once everything is answered. Raises OSError when cut off."""
        with suppress(BlockingIOError):
            while data := self.sock.recv(2**18):
                seen = self._tail + data
                answers = seen.count(b"HTTP/1.1 ")
                self._open -= answers
                self._tally.answers += answers
                self._tail = data[-8:] if not data.endswith(b"HTTP/1.1 ") else b""
            raise ConnectionResetError
        if self._open <= 0:
            with suppress(BlockingIOError):
                self.sock.send(self._requests)
                self._open = self._count
                self._tally.requests += self._count

    @property
    def is_pending(self) -> bool:
        """Whether an answer is missing."""
        return self._open > 0


class UnauthenticatedClients:
    """All clients of a plan."""

    def __init__(self, plan: UnauthenticatedPlan) -> None:
        self._plan = plan
        self._scrapes: deque[socket.socket] = deque()
        self._scrape_at = time.monotonic()
        self._report_at = 0.0
        self._tally = _Tally()

    def run(self) -> None:
        """Keep all clients busy until the plan ends."""
        plan = self._plan
        makers: list[Callable[[], _Body | _WholeBody | _Pipeline]] = [
            *[lambda: _Body(plan.port, self._tally)] * plan.bodies,
            *[lambda: _WholeBody(plan.port, _large_request(), self._tally)] * plan.whole_bodies,
            *[lambda: _Pipeline(plan.port, plan.requests_at_once, self._tally)] * plan.pipelining,
            *[lambda: _Pipeline(plan.port, 1, self._tally)] * plan.asking,
        ]
        clients: list[_Body | _WholeBody | _Pipeline | None] = [None] * len(makers)
        while time.monotonic() < plan.end_at:
            for place, client in enumerate(clients):
                try:
                    if client is None:
                        clients[place] = makers[place]()
                    else:
                        client.advance()
                except OSError:
                    if client is not None:
                        client.sock.close()
                    clients[place] = None
            self._scrape()
            self._report([client for client in clients if client is not None])
            time.sleep(_TURN_SECONDS)

    def _report(self, clients: list[_Body | _WholeBody | _Pipeline]) -> None:
        now = time.monotonic()
        if now < self._report_at:
            return
        self._report_at = now + _REPORT_SECONDS
        delivered = Delivered(
            at=now,
            connections=len(clients),
            pending=sum(client.is_pending for client in clients),
            requests=self._tally.requests,
            answers=self._tally.answers,
            bodies=self._tally.bodies,
            scrapes=self._tally.scrapes,
        )
        print(msgspec.json.encode(delivered).decode(), flush=True)

    def _scrape(self) -> None:
        while self._scrape_at <= time.monotonic():
            self._scrape_at += 1 / self._plan.scrapes_a_second
            with suppress(OSError):
                sock = _connected(self._plan.plain_port, receive_bytes=_FEW_BYTES)
                self._scrapes.append(sock)
                sock.send(get("/metrics"))
                self._tally.scrapes += 1
            if len(self._scrapes) > _KEPT_SCRAPES:
                self._scrapes.popleft().close()


@functools.cache
def _large_request() -> bytes:
    name = b'"ip-10-0-0-1.eu-central-1.compute.internal"'
    body = b'{"Pod":{"metadata":{"name":"x"}},"NodeNames":[' + b",".join([name] * (_BODY_BYTES // len(name))) + b"]}"
    return post("/scheduler/prioritize", body)


def _connected(port: int, receive_bytes: int | None = None) -> socket.socket:
    sock = socket.socket()
    try:
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.settimeout(2.0)
        sock.connect(("127.0.0.1", port))
        sock.settimeout(0)
    except OSError:
        sock.close()
        raise
    return sock


if __name__ == "__main__":
    yield_to_all_others()
    UnauthenticatedClients(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=UnauthenticatedPlan)).run()
