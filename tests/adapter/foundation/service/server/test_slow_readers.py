"""Clients that send requests and read slowly or not at all, while others are answered."""

from __future__ import annotations

import contextlib
import signal
import socket
import ssl
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.adapter.foundation.service.example_server import pattern
from tests.adapter.foundation.service.servers import (
    NEVER,
    PATIENCE,
    Certificates,
    Server,
    connections,
    dropped,
    get,
    is_closed,
    read_answer,
    read_head,
    running_server,
    send_head,
)
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READERS = 40
LIST_BYTES = 82_000
TRANSPORTS = [True, False]


def reader(server: Server, *, tls: bool, segment: int = 536) -> socket.socket:
    """Return a connection that can hold little: it has a small receive buffer and small segments."""
    sock = socket.socket()
    sock.settimeout(PATIENCE)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, segment)
    sock.connect(("127.0.0.1", server.port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return server.client_context().wrap_socket(sock, server_hostname="localhost") if tls else sock


def are_waiting(server: Server, count: int) -> bool:
    return connections(server, "send") == count


def has_settled(server: Server, requested: int) -> bool:
    return connections(server, "send") + dropped(server, "answers_crowded_out") == requested


def caller(server: Server, *, tls: bool) -> socket.socket:
    return server.connect() if tls else server.tcp()


@pytest.fixture(scope="module", params=TRANSPORTS, ids=["tls", "plain"], name="patient")
def _patient(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[tuple[Server, bool]]:
    """Yield a server that never cuts a client off, and whether it speaks TLS."""
    folder = tmp_path_factory.mktemp("patient")
    with running_server(folder, certificates, threads=4, deadlines=NEVER, tls=request.param) as server:
        yield server, request.param


@pytest.mark.parametrize("path", [f"/pattern?bytes={LIST_BYTES}", "/shared", "/pattern?bytes=1000000"])
def test_clients_that_never_read_and_reconnect_do_not_delay_others(patient: tuple[Server, bool], path: str) -> None:
    server, tls = patient
    with contextlib.ExitStack() as stack, caller(server, tls=tls) as old:
        assert get(old)[0] == 200
        for wave in (1, 2):
            for _ in range(READERS // 2):
                send_head(stack.enter_context(reader(server, tls=tls)), path)
            until(partial(are_waiting, server, wave * READERS // 2))
            assert connections(server, "request") == 0
            assert server.plain("/readyz")[0] == 200
            assert get(old)[0] == 200
            with caller(server, tls=tls) as new:
                assert get(new)[0] == 200
    until(lambda: connections(server, "send") == 0)


@pytest.mark.parametrize("count", [LIST_BYTES, 1_000_000])
def test_a_slow_reader_gets_every_byte(patient: tuple[Server, bool], count: int) -> None:
    server, tls = patient
    with reader(server, tls=tls, segment=1400) as sock:
        for _ in range(2):
            send_head(sock, f"/pattern?bytes={count}")
            until(lambda: connections(server, "send") == 1)
            assert read_answer(sock) == (200, pattern(count))


def test_a_second_request_waits_until_the_first_answer_is_read(patient: tuple[Server, bool]) -> None:
    server, tls = patient
    with reader(server, tls=tls) as sock:
        for path in (f"/pattern?bytes={LIST_BYTES}", "/pattern?bytes=400", "/facts"):
            send_head(sock, path)
        until(lambda: connections(server, "send") == 1)
        assert [read_answer(sock) for _ in range(2)] == [(200, pattern(LIST_BYTES)), (200, pattern(400))]
        assert read_answer(sock)[0] == 200


def test_an_answer_that_closes_its_connection_arrives_whole(patient: tuple[Server, bool]) -> None:
    server, tls = patient
    with reader(server, tls=tls) as sock:
        send_head(sock, f"/pattern?bytes={LIST_BYTES}", "Connection: close")
        until(lambda: connections(server, "send") == 1)
        assert read_answer(sock) == (200, pattern(LIST_BYTES))
        assert is_closed(sock)


def test_the_answer_to_head_has_the_length_and_no_body(patient: tuple[Server, bool]) -> None:
    server, tls = patient
    with caller(server, tls=tls) as sock:
        sock.sendall(b"HEAD /pattern?bytes=400 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"Content-Length: 400" in read_head(sock)
        assert get(sock)[0] == 200


def test_chunks_are_sent_whole_and_in_order(patient: tuple[Server, bool]) -> None:
    server, tls = patient
    with caller(server, tls=tls) as sock:
        send_head(sock, "/chunks")
        assert b"Transfer-Encoding: chunked" in read_head(sock)
        received = b""
        while not received.endswith(b"0\r\n\r\n"):
            received += sock.recv(100)
        assert received == b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"
        assert get(sock)[0] == 200


def test_expect_100_continue_is_answered_before_the_body(patient: tuple[Server, bool]) -> None:
    server, tls = patient
    with caller(server, tls=tls) as sock:
        sock.sendall(b"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        assert read_head(sock).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"hello")
        assert read_answer(sock) == (200, b"hello")


def test_clients_that_keep_sending_and_never_read_occupy_no_thread(patient: tuple[Server, bool]) -> None:
    server, tls = patient
    with contextlib.ExitStack() as stack:
        for number in range(1, 7):
            sock = stack.enter_context(reader(server, tls=tls))
            sock.sendall(100 * b"GET /big?bytes=8000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            until(partial(are_waiting, server, number))
        with caller(server, tls=tls) as new:
            assert get(new)[0] == 200


@pytest.mark.parametrize(
    ("deadlines", "least_rate"),
    [({"pace": 0.3}, 100_000.0), ({"pace": 0.3, "send": 1.0}, 0.0)],
    ids=["below the least rate", "past the deadline"],
)
@pytest.mark.parametrize("tls", TRANSPORTS)
def test_a_client_that_reads_too_slowly_is_cut_off(
    tmp_path: Path, certificates: Certificates, deadlines: dict[str, float], least_rate: float, *, tls: bool
) -> None:
    settings: dict[str, Any] = {"deadlines": NEVER | deadlines, "answers": {"least_rate": least_rate}, "tls": tls}
    with running_server(tmp_path, certificates, **settings) as server, reader(server, tls=tls) as sock:
        send_head(sock, "/pattern?bytes=2000000")

        def is_cut_while_it_reads_a_byte_now_and_then() -> bool:
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                sock.recv(1)
            return dropped(server, "answer_unread") == 1

        until(is_cut_while_it_reads_a_byte_now_and_then)
        with caller(server, tls=tls) as new:
            assert get(new)[0] == 200


def test_a_client_that_reads_at_the_minimum_rate_is_not_cut_off(tmp_path: Path, certificates: Certificates) -> None:
    settings: dict[str, Any] = {"deadlines": NEVER | {"pace": 0.3}, "answers": {"least_rate": 100.0}}
    with running_server(tmp_path, certificates, **settings) as server, reader(server, tls=True, segment=1400) as sock:
        send_head(sock, "/pattern?bytes=1000000")
        assert read_answer(sock) == (200, pattern(1_000_000))
        assert dropped(server, "answer_unread") == 0


class TestMemory:
    """The memory for answers that wait for their readers is bounded."""

    def test_beyond_the_memory_bound_the_slowest_readers_are_dropped(
        self, tmp_path: Path, certificates: Certificates
    ) -> None:
        settings: dict[str, Any] = {"deadlines": NEVER, "answers": {"most_bytes": 1_000_000}}
        with running_server(tmp_path, certificates, **settings) as server, contextlib.ExitStack() as stack:
            for number in range(6):
                send_head(stack.enter_context(reader(server, tls=True)), "/pattern?bytes=400000")
                until(partial(has_settled, server, number + 1))
            assert (connections(server, "send"), dropped(server, "answers_crowded_out")) == (2, 4)
            with reader(server, tls=True, segment=1400) as honest:
                send_head(honest, "/pattern?bytes=400000")
                assert read_answer(honest) == (200, pattern(400_000))

    def test_a_body_with_many_waiting_readers_counts_once(self, tmp_path: Path, certificates: Certificates) -> None:
        settings: dict[str, Any] = {"deadlines": NEVER, "answers": {"most_bytes": 1_000_000}}
        with running_server(tmp_path, certificates, **settings) as server, contextlib.ExitStack() as stack:
            for _ in range(6):
                send_head(stack.enter_context(reader(server, tls=True)), "/shared")
            until(lambda: connections(server, "send") == 6)
            assert dropped(server, "answers_crowded_out") == 0

    def test_an_answer_that_is_too_large_is_a_503(self, tmp_path: Path, certificates: Certificates) -> None:
        with running_server(tmp_path, certificates, answers={"most_bytes_each": 100_000}) as server:
            with server.connect() as sock:
                send_head(sock, "/pattern?bytes=200000")
                status, body = read_answer(sock)
                assert (status, body) == (503, b"the answer has more than 100000 bytes: request less at once\n")
                assert is_closed(sock)
            with server.connect() as new:
                assert get(new)[0] == 200
            assert dropped(server, "answer_too_large") == 1


def test_shutdown_waits_for_a_reader(tmp_path: Path, certificates: Certificates) -> None:
    with (
        running_server(tmp_path, certificates, drain_seconds=PATIENCE) as server,
        reader(server, tls=True, segment=1400) as sock,
    ):
        send_head(sock, "/pattern?bytes=300000")
        until(lambda: connections(server, "send") == 1)
        server.process.send(signal.SIGTERM)
        until(lambda: "shutting down: no longer ready" in server.log)
        assert read_answer(sock) == (200, pattern(300_000))
        assert is_closed(sock)
        sock.close()
        assert server.process.wait(PATIENCE) == 0


def test_shutdown_does_not_wait_forever_for_a_reader(tmp_path: Path, certificates: Certificates) -> None:
    with (
        running_server(tmp_path, certificates, deadlines=NEVER, drain_seconds=0.3) as server,
        reader(server, tls=True) as sock,
    ):
        send_head(sock, "/pattern?bytes=300000")
        until(lambda: connections(server, "send") == 1)
        server.process.send(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0


def test_a_connection_opened_before_the_start_ended_has_tcp_nodelay(tmp_path: Path, certificates: Certificates) -> None:
    begin = tmp_path / "begin"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings: dict[str, Any] = {"address": f"127.0.0.1:{port}", "start_after": str(begin), "tls": False}
    with running_server(tmp_path, certificates, until_serving=False, **settings) as server:
        until(lambda: "metrics and health are served" in server.log)
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as early:
            begin.touch()
            assert get(early)[1]["no_delay"]
