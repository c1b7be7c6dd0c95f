"""Bodies of requests: whose bodies are read at all, and what an endless body costs the other clients."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from gunicorn.workers.gthread import ThreadWorker

from adapter.foundation.service.server.answering import AnsweringWorker
from adapter.foundation.service.server.connections.bodies import ArrivingBody, BodyLimits, BodyPlan, Head, planned_body
from adapter.foundation.service.server.connections.connection import Connection
from adapter.foundation.service.server.connections.held_bytes import held_bodies
from adapter.foundation.service.server.connections.stages import Stage
from adapter.foundation.web.body import RECEIVED
from tests.adapter.foundation.service.example_server import LARGEST_BODY_BYTES, LARGEST_KNOWN_BYTES
from tests.adapter.foundation.service.servers import (
    NEVER,
    Certificates,
    Server,
    connections,
    dropped,
    get,
    is_closed,
    read_answer,
    running_server,
)
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path


def post(length: int, path: str = "/known") -> bytes:
    """Return the head of a request with a body of this length."""
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode()


def known(server: Server, certificates: Certificates) -> socket.socket:
    return server.connect(server.client_context(certificates.client))


@pytest.mark.parametrize("size", [0, 1, 60_000, LARGEST_KNOWN_BYTES])
def test_a_body_arrives_whole_and_the_connection_stays_open(
    server: Server, certificates: Certificates, size: int
) -> None:
    body = bytes(range(250)) * (size // 250) + b"e" * (size % 250)
    with known(server, certificates) as sock:
        for _ in range(2):
            sock.sendall(post(size) + body)
            assert read_answer(sock) == (200, body)
        sock.sendall(post(3) + b"one" + post(3) + b"two" + b"GET /facts HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert [read_answer(sock)[1], read_answer(sock)[1]] == [b"one", b"two"]
        assert read_answer(sock)[0] == 200


def test_a_body_that_arrives_in_two_parts_is_joined(server: Server, certificates: Certificates) -> None:
    with known(server, certificates) as sock:
        sock.sendall(post(6) + b"one")
        until(lambda: connections(server, "body") == 1)
        sock.sendall(b"two")
        assert read_answer(sock) == (200, b"onetwo")


def test_an_unknown_client_is_refused_before_its_body_is_read(server: Server) -> None:
    with server.connect() as sock:
        sock.sendall(post(1_000_000))
        assert read_answer(sock) == (401, b"who is there?")
        assert is_closed(sock)


def test_a_body_that_is_too_large_is_refused_before_it_is_read(server: Server, certificates: Certificates) -> None:
    with known(server, certificates) as sock:
        sock.sendall(post(LARGEST_KNOWN_BYTES + 1))
        assert read_answer(sock)[0] == 413


def test_unfinished_bodies_occupy_no_thread(tmp_path: Path, certificates: Certificates) -> None:
    with (
        running_server(tmp_path, certificates, deadlines=NEVER, threads=2) as server,
        ExitStack() as stack,
    ):
        for _ in range(20):
            stack.enter_context(known(server, certificates)).sendall(post(1000) + b"x")
        until(lambda: connections(server, "body") == 20)
        with server.connect() as sock:
            assert get(sock)[0] == 200


def test_the_reserved_threads_answer_while_all_others_are_occupied(tmp_path: Path, certificates: Certificates) -> None:
    with (
        running_server(tmp_path, certificates, deadlines=NEVER, threads=2, reserved_threads=1) as server,
        ExitStack() as stack,
    ):
        for _ in range(10):
            stack.enter_context(server.connect()).sendall(post(LARGEST_BODY_BYTES, "/body") + b"x")
        until(lambda: connections(server, "request") == 10)
        with known(server, certificates) as sock:
            sock.sendall(post(3) + b"one")
            assert read_answer(sock) == (200, b"one")


def test_all_other_clients_are_answered_while_a_reserved_thread_is_in_use(
    tmp_path: Path, certificates: Certificates
) -> None:
    is_over = tmp_path / "over"
    with (
        running_server(tmp_path, certificates, deadlines=NEVER, threads=1, reserved_threads=1) as server,
        known(server, certificates) as scheduler,
        ExitStack() as stack,
    ):
        scheduler.sendall(post(3, f"/held?until={is_over}") + b"one")
        until(lambda: connections(server, "request") == 1)
        unknown_clients = [stack.enter_context(server.connect()) for _ in range(5)]
        for unknown_client in unknown_clients:
            unknown_client.sendall(2 * b"GET /facts HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert [read_answer(unknown_client)[0] for unknown_client in unknown_clients for _ in range(2)] == [200] * 10
        until(lambda: connections(server, "request") == 1)
        is_over.touch()
        assert read_answer(scheduler)[0] == 200


def test_a_client_that_pipelines_requests_has_no_reserved_thread() -> None:
    """A client that sends many requests ahead would block the scheduler; kube-scheduler waits for each answer."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        conn = Connection(ours, ("127.0.0.1", 1), ("127.0.0.1", 2))
        conn.body = ArrivingBody(BodyPlan(10, 10), 1)
        conn.head += b"POST / HTTP/1.1\r\n\r\n"
        assert conn.is_reserved
        assert conn.next_is_sent()
        assert not conn.is_reserved


@pytest.mark.parametrize(
    ("body", "is_known", "stage", "comes_first"),
    [
        (ArrivingBody(BodyPlan(10, 10), 1), False, Stage.IDLE, True),
        (None, True, Stage.IDLE, True),
        (None, False, Stage.IDLE, False),
        (ArrivingBody(BodyPlan(10, 0), 1), False, Stage.IDLE, False),
        # A client that sends a head byte by byte is polled with all others.
        (ArrivingBody(BodyPlan(10, 10), 1), False, Stage.HEAD, False),
        (None, True, Stage.HEAD, False),
    ],
)
def test_a_kept_connection_comes_first_if_it_was_reserved_or_has_a_certificate(
    body: ArrivingBody | None,
    is_known: bool,  # noqa: FBT001 - a parameter of the table
    stage: Stage,
    comes_first: bool,  # noqa: FBT001 - likewise
) -> None:
    class OfTheTable(Connection):
        @property
        def is_known(self) -> bool:
            return is_known

    ours, theirs = socket.socketpair()
    with ours, theirs:
        conn = OfTheTable(ours, ("127.0.0.1", 1), ("127.0.0.1", 2))
        conn.body = body
        conn.end_request()
        conn.stage = stage
        assert conn.comes_first is comes_first


@pytest.mark.parametrize(("length", "is_reserved"), [(10, True), (11, False)])
def test_only_a_small_enough_body_gets_a_reserved_thread(length: int, is_reserved: bool) -> None:  # noqa: FBT001 - a parameter of the table
    assert ArrivingBody(BodyPlan(100, 10), length).is_reserved is is_reserved


def test_a_body_that_arrives_too_slowly_is_cut_off(tmp_path: Path, certificates: Certificates) -> None:
    with (
        running_server(tmp_path, certificates, deadlines=NEVER | {"body_pace": 0.2}) as server,
        known(server, certificates) as sock,
    ):
        sock.sendall(post(100_000) + b"x" * 2000)
        assert read_answer(sock)[0] == 408
        assert dropped(server, "body_timeout") == 1


def test_a_body_has_a_time_limit_however_fast_it_comes(tmp_path: Path, certificates: Certificates) -> None:
    hurry = NEVER | {"body_pace": 0.2, "body": 0.2}
    with (
        running_server(tmp_path, certificates, deadlines=hurry, bodies={"least_rate": 0.0}) as server,
        known(server, certificates) as sock,
    ):
        sock.sendall(post(100_000) + b"x" * 50_000)
        assert read_answer(sock)[0] == 408


def test_the_total_size_of_bodies_is_bounded_and_the_largest_is_dropped(
    tmp_path: Path, certificates: Certificates
) -> None:
    with (
        running_server(
            tmp_path, certificates, deadlines=NEVER, bodies={"most_bytes": 2_000_000, "most_beside_bytes": 1_000_000}
        ) as server,
        ExitStack() as stack,
    ):
        socks = [stack.enter_context(known(server, certificates)) for _ in range(3)]
        for sock, size in zip(socks, (600_000, 1_000_000, 600_000), strict=True):
            sock.sendall(post(LARGEST_KNOWN_BYTES) + b"x" * size)
        assert read_answer(socks[1])[0] == 503
        assert dropped(server, "bodies_crowded_out") == 1
        for sock in (socks[0], socks[2]):
            sock.sendall(b"x")
        until(lambda: connections(server, "body") == 2)


def test_one_body_may_exceed_the_total_while_the_others_are_small() -> None:
    """A scheduler may send whole nodes to a server that requires no client certificate."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        large, small, other = (Connection(ours, ("127.0.0.1", 1), ("127.0.0.1", 2)) for _ in range(3))
        held = held_bodies(BodyLimits(most_bytes=100, most_beside_bytes=10))

        def hold(conn: Connection, size: int) -> Connection | None:
            conn.body = ArrivingBody(BodyPlan(1000), 1000)
            conn.body.received += bytes(size)
            held.note(conn)
            return held.one_too_many([large, small, other])

        assert hold(large, 500) is None
        assert hold(small, 9) is None
        assert hold(other, 1) is large
        held.release(large)
        assert hold(other, 91) is None


def test_with_optional_tls_the_first_byte_decides(tmp_path: Path, certificates: Certificates) -> None:
    with running_server(tmp_path, certificates, tls_optional=True) as server:
        with server.tcp() as plain, server.tcp() as silent, known(server, certificates) as sock:
            until(lambda: connections(server, "handshake") == 2)
            assert get(plain)[1]["chain"] == []
            assert len(get(sock)[1]["chain"]) > 0
            silent.close()
        with server.tcp() as plain:
            plain.sendall(post(3))
            assert read_answer(plain)[0] == 401


@pytest.mark.parametrize(
    "head",
    [
        "POST /known HTTP/1.0\r\nContent-Length: 3",
        "POST /known HTTP/1.1",
        "POST /known HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3",
        "POST /known HTTP/1.1\r\nContent-Length: +3",
        "POST /known HTTP/1.1\r\nContent-Length: \u00b2",
        "POST /known HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked",
        "POST /known HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue",
        "POST /known HTTP/1.1\r\nContent-Length: 11",
        "POST",
        "",
    ],
)
def test_a_request_without_a_plain_content_length_is_left_to_the_parser(head: str) -> None:
    def plan(_: Head) -> BodyPlan:
        return BodyPlan(10)

    assert planned_body(head.encode("latin-1"), (), plan) is None
    assert planned_body(b"POST /known HTTP/1.1\r\ncontent-length:3", (), plan) is not None


class Answering(AnsweringWorker):
    """The part of a worker that answers requests, run in the test's thread."""

    def __init__(self) -> None:
        self._here = threading.local()

    @property
    def facts(self) -> dict[str, Any]:
        """Return what the thread passes to the application."""
        return cast("dict[str, Any]", self._here.facts)


def test_a_body_is_passed_without_a_copy_and_no_thread_keeps_it_after_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker, passed = Answering(), list[object]()

    def handle_request(*_: object) -> bool:
        passed.append(worker.facts[RECEIVED])
        return True

    monkeypatch.setattr(ThreadWorker, "handle_request", handle_request)
    with closing(socket.socket()) as sock:
        conn = Connection(sock, ("", 1), ("", 2))
        conn.body = ArrivingBody(BodyPlan(10), 3)
        conn.body.received += b"one"
        whole = conn.body.received
        assert worker.handle_request(cast("Any", SimpleNamespace(received=())), conn)
        assert not conn.body.received
    assert passed == [b"one"]
    assert passed[0] is whole
    assert RECEIVED not in worker.facts
