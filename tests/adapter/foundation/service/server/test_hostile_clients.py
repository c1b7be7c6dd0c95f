"""Clients that begin a request and do not go on; some deadlines are an hour, so that no test passes because of them."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.adapter.foundation.service.servers import (
    NEVER,
    Certificates,
    Server,
    connections,
    dropped,
    get,
    is_closed,
    metric,
    read_answer,
    running_server,
    send_head,
)
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

THREADS = 16
SHORT_SECONDS = {"handshake": 1.0, "head": 2.0, "body": 1.0, "idle": 0.4}
"""Within all but the last, a client sends something, on a busy machine as well."""


def client_hello() -> bytes:
    """Return the first flight of a real client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def stalled(server: Server, first_bytes: bytes, count: int) -> list[socket.socket]:
    """Return connections that send these bytes and nothing more."""
    sockets = [server.tcp() for _ in range(count)]
    for sock in sockets:
        sock.sendall(first_bytes)
    return sockets


@contextlib.contextmanager
def attack(server: Server) -> Iterator[None]:
    """Keep three times as many stalled clients of each kind as there are threads during the block."""
    hello = client_hello()
    with contextlib.ExitStack() as stack:
        for first_bytes in (b"", hello[:1], hello[: len(hello) // 2], hello):
            for sock in stalled(server, first_bytes, 3 * THREADS // 4):
                stack.enter_context(sock)
        for half in (b"", b"GET", b"GET /facts HTTP/1.1\r\n", b"GET /facts HTTP/1.1\r\nHost: localhost\r\n"):
            for _ in range(3 * THREADS // 4):
                sock = stack.enter_context(server.connect())
                sock.sendall(half)
        yield


def test_stalled_handshakes_and_heads_do_not_delay_other_clients(tmp_path: Path, certificates: Certificates) -> None:
    with (
        running_server(tmp_path, certificates, threads=THREADS, deadlines=NEVER) as server,
        server.connect() as old,
    ):
        assert get(old)[0] == 200
        with attack(server):
            until(lambda: connections(server, "handshake") + connections(server, "head") >= 6 * THREADS - 12)
            assert server.plain("/readyz")[0] == 200
            assert [get(old)[0] for _ in range(5)] == [200] * 5
            for _ in range(5):
                with server.connect() as new:
                    assert get(new)[0] == 200
            assert server.plain("/livez")[0] == 200


def test_missing_bodies_occupy_no_thread_after_the_answer(tmp_path: Path, certificates: Certificates) -> None:
    with (
        running_server(tmp_path, certificates, threads=2, deadlines=NEVER) as server,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(8):
            sock = stack.enter_context(server.connect())
            send_head(sock, "/facts", "Content-Length: 10")
            assert read_answer(sock)[0] == 200
        with server.connect() as new:
            assert get(new)[0] == 200


def test_unread_answers_do_not_delay_new_clients(tmp_path: Path, certificates: Certificates) -> None:
    with (
        running_server(tmp_path, certificates, threads=2, deadlines=NEVER) as server,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(4):
            sock = stack.enter_context(server.connect())
            send_head(sock, "/big?bytes=10000000")
        until(lambda: connections(server, "send") == 4)
        with server.connect() as new:
            assert get(new)[0] == 200


@pytest.fixture(scope="module")
def hasty(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Server]:
    """Yield a server with one short deadline: on a busy machine, another could come before a client has acted."""
    deadlines = NEVER | {request.param: SHORT_SECONDS[request.param]}
    with running_server(tmp_path_factory.mktemp("hasty"), certificates, deadlines=deadlines, threads=2) as server:
        yield server


def short(deadline: str) -> pytest.MarkDecorator:
    """Return the mark of a test whose server has this short deadline."""
    return pytest.mark.parametrize("hasty", [deadline], indirect=True)


@pytest.mark.parametrize("first_bytes", [b"", b"\x16", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n"])
def test_clients_that_reset_their_connections_do_not_affect_others(server: Server, first_bytes: bytes) -> None:
    with server.connect() as kept:
        before = get(kept)[1]["pid"]
        for _ in range(50):
            with server.tcp() as sock:
                sock.sendall(first_bytes)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with server.connect() as new:
            assert get(new)[1]["pid"] == before
        assert get(kept)[1]["pid"] == before
    assert dropped(server, "unforeseen") == 0


class TestDeadlines:
    """Each stage has a deadline of its own for its whole length: an occasional byte does not prolong it."""

    @pytest.mark.parametrize("length", [0, 1, 100])
    @short("handshake")
    def test_a_handshake_that_stalls_is_ended(self, hasty: Server, length: int) -> None:
        with hasty.tcp() as sock:
            sock.sendall(client_hello()[:length])
            assert is_closed(sock)

    @short("handshake")
    def test_a_handshake_whose_bytes_trickle_is_ended(self, hasty: Server) -> None:
        with hasty.tcp() as sock, pytest.raises((ConnectionError, TimeoutError)):
            trickle(sock, client_hello()[:-1])

    @short("head")
    def test_a_head_that_stalls_is_answered_with_408(self, hasty: Server) -> None:
        with hasty.connect() as sock:
            sock.sendall(b"GET /facts HTTP/1.1\r\n")
            assert read_answer(sock)[0] == 408
            assert is_closed(sock)

    @short("head")
    def test_a_head_whose_bytes_trickle_is_ended(self, hasty: Server) -> None:
        with hasty.connect() as sock, pytest.raises((ConnectionError, ssl.SSLError)):
            trickle(sock, b"GET /facts HTTP/1.1\r\nX-A: " + 4000 * b"b")

    @short("head")
    def test_a_second_head_that_stalls_is_answered_with_408(self, hasty: Server) -> None:
        with hasty.connect() as sock:
            assert get(sock)[0] == 200
            sock.sendall(b"GET /fac")
            assert read_answer(sock)[0] == 408

    @short("head")
    def test_a_connection_whose_first_request_never_begins_is_closed(self, hasty: Server) -> None:
        with hasty.connect() as sock:
            assert is_closed(sock)

    @short("idle")
    def test_an_idle_connection_is_closed(self, hasty: Server) -> None:
        with hasty.connect() as sock:
            assert get(sock)[0] == 200
            assert is_closed(sock)

    @short("body")
    def test_a_connection_whose_body_stalls_is_closed(self, hasty: Server) -> None:
        with hasty.connect() as sock:
            send_head(sock, "/read", "Content-Length: 10")
            sock.sendall(b"12345")
            assert is_closed(sock)

    @pytest.mark.parametrize("framing", ["Content-Length: 10", "Transfer-Encoding: chunked"])
    @short("body")
    def test_a_body_that_stalls_for_a_route_is_answered_with_408(self, hasty: Server, framing: str) -> None:
        with hasty.connect() as sock:
            sock.sendall(f"POST /body HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n5\r\n123".encode())
            assert read_answer(sock)[0] == 408
            assert is_closed(sock)


def trickle(sock: socket.socket, data: bytes) -> None:
    """Send byte by byte, with pauses shorter than the deadline, until the server closes the connection."""
    sock.settimeout(0.05)
    for byte in data:
        sock.sendall(bytes([byte]))
        with contextlib.suppress(TimeoutError):
            if not sock.recv(4096):
                raise ConnectionError("closed")
    raise AssertionError("all was sent")


def test_with_too_many_connections_the_oldest_unfinished_one_is_closed_first(
    tmp_path: Path, certificates: Certificates
) -> None:
    limits = {"most": 12, "most_unfinished": 6}
    with (
        running_server(tmp_path, certificates, deadlines=NEVER, connections=limits) as server,
        server.connect() as kept,
        contextlib.ExitStack() as stack,
    ):
        assert get(kept)[0] == 200
        unfinished = [stack.enter_context(sock) for sock in stalled(server, b"\x16", 20)]
        until(lambda: dropped(server, "crowded_out") >= 14)
        assert is_closed(unfinished[0])
        with server.connect() as new:
            assert get(new)[0] == 200
        assert get(kept)[0] == 200


def _has_idle(server: Server, count: int) -> bool:
    return metric(server, 'example_connections{stage="idle"}') == count


def test_if_all_connections_are_idle_the_longest_idle_one_is_closed(tmp_path: Path, certificates: Certificates) -> None:
    limits = {"most": 5, "most_unfinished": 5}
    with (
        running_server(tmp_path, certificates, deadlines=NEVER, connections=limits) as server,
        contextlib.ExitStack() as stack,
    ):
        kept = [stack.enter_context(server.connect()) for _ in range(5)]
        for idle, sock in enumerate(kept, start=1):
            assert get(sock)[0] == 200
            # An answer reaches its client a moment before its connection is idle.
            until(partial(_has_idle, server, idle))
        with server.connect() as new:
            assert get(new)[0] == 200
        assert is_closed(kept[0])
        assert get(kept[-1])[0] == 200
