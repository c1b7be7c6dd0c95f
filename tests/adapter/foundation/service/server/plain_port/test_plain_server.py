from __future__ import annotations

import gzip
import itertools
import socket
import threading
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.files.gzip_format import PackedText, gzipped_text
from adapter.foundation.service.server.addresses import Address, address_of, listening_socket
from adapter.foundation.service.server.plain_port.paced_text import LONGEST_PAUSE_SECONDS, PacedText
from adapter.foundation.service.server.plain_port.plain_answers import PlainAnswer
from adapter.foundation.service.server.plain_port.plain_connections import LARGEST_HEAD, PlainConnection, held_bytes
from adapter.foundation.service.server.plain_port.plain_server import MOST_CONNECTIONS, MOST_READERS, PlainServer
from tests.adapter.foundation.service.servers import ask, connect, is_closed
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

BIG = b"x" * 20_000_000


def answer(path: str, query: str) -> PlainAnswer | None:
    match path:
        case "/metrics":
            return PlainAnswer(200, f"metrics {query}".encode(), "text/x")
        case "/big":
            return PlainAnswer(200, BIG)
        case "/own":
            return PlainAnswer(200, bytes(BIG[:1]) + BIG)
        case "/packed":
            return PlainAnswer(200, b"", further=(gzipped_text(BIG), b"", b"more"))
        case "/broken":
            raise RuntimeError("a collector is broken")
        case _:
            return None


def connections_of(server: PlainServer) -> list[PlainConnection]:
    """Return the current connections; the server's thread may change them at any time."""
    return list(server._connections)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with closing(listening_socket(Address("127.0.0.1", 0))) as listener:
        server = PlainServer(listener, answer, deadline_seconds=3600)
        server.start()
        yield address_of(listener).port
        server.stop()


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/metrics?a=b", 200, b"metrics a=b"),
        ("HEAD", "/metrics", 200, b""),
        ("HEAD", "/packed", 200, b""),
        ("GET", "/other", 404, b"there are /metrics, /livez and /readyz here\n"),
        ("POST", "/metrics", 405, b"only GET and HEAD are allowed here\n"),
        ("GET", "/broken", 500, b"internal error\n"),
        ("GET", "/metrics", 200, b"metrics "),
    ],
)
def test_requests_are_answered(port: int, method: str, path: str, status: int, body: bytes) -> None:
    assert ask(port, path, method) == (status, body)


@pytest.mark.parametrize("line", [b"nonsense", b"GET metrics HTTP/1.1", b"GET / HTTP/2.0", b"\xff\xfe \x00"])
def test_an_invalid_request_is_a_400(port: int, line: bytes) -> None:
    with connect(port) as sock:
        sock.sendall(line + b"\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 400 ")


def test_a_large_answer_arrives_whole(port: int) -> None:
    assert ask(port, "/big") == (200, BIG)


def test_a_packed_text_arrives_unpacked(port: int) -> None:
    assert ask(port, "/packed") == (200, BIG + b"more")


def test_little_of_an_unread_packed_text_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[int] = []

    def noted(piece: PackedText) -> bytes:
        unpacked.append(piece.size)
        return gzip.decompress(piece.member)

    monkeypatch.setattr(PackedText, "unpack", noted)
    text = tuple(gzipped_text(bytes(100_000)) for _ in range(1000))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0)
        reader = PlainConnection(ours, 0.0)
        reader.answer(b"head", text)
        for _ in range(1000):
            assert not reader.write()
        assert sum(unpacked) < 2_000_000
        assert held_bytes([reader, reader]) < 1_000_000


def test_stalled_connections_do_not_delay_others(port: int) -> None:
    with ExitStack() as stack:
        for first in (b"", b"GET", b"GET /big HTTP/1.1\r\n\r\n") * 20:
            stack.enter_context(connect(port)).sendall(first)
        assert ask(port, "/metrics")[0] == 200


def test_the_oldest_connection_is_dropped_when_there_are_too_many(port: int) -> None:
    with ExitStack() as stack:
        oldest, *_ = [stack.enter_context(connect(port)) for _ in range(MOST_CONNECTIONS + 1)]
        assert ask(port, "/metrics")[0] == 200
        assert is_closed(oldest)


@pytest.mark.parametrize("first", [b"", b"GET /metrics", b"GET /big HTTP/1.1\r\n\r\n"])
def test_a_connection_has_a_total_deadline(first: bytes) -> None:
    with closing(listening_socket(Address("127.0.0.1", 0))) as listener:
        server = PlainServer(listener, answer, deadline_seconds=1.0)
        with connect(address_of(listener).port) as sock:
            server.start()
            sock.sendall(first)
            until(lambda: server._connections)
            until(lambda: not server._connections)
            assert len(read_to_end(sock)) < len(BIG)
        server.stop()


def test_a_too_slow_reader_is_dropped_before_the_next_text_is_made() -> None:
    goes_on = threading.Event()
    made = itertools.count()

    def make() -> Iterator[bytes]:
        assert next(made) == 0 or goes_on.wait(30)
        yield BIG

    text = PacedText(make)
    text.start()
    with closing(listening_socket(Address("127.0.0.1", 0))) as listener, closing(socket.socket()) as unread:
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server = PlainServer(listener, answer, metrics=text, deadline_seconds=25)
        server.start()
        unread.connect(("127.0.0.1", address_of(listener).port))
        unread.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        until(lambda: any(connection.is_answered for connection in connections_of(server)))
        with connect(address_of(listener).port) as reader:
            reader.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            until(lambda: [connection.is_waiting for connection in connections_of(server)] == [True])
            goes_on.set()
            assert len(read_to_end(reader)) > len(BIG)
        server.stop()
    text.stop()


def read_to_end(sock: socket.socket) -> bytes:
    """Read until the server closes the connection, or resets it since it has read too little."""
    data = bytearray()
    with suppress(ConnectionResetError):
        while more := sock.recv(1_000_000):
            data += more
    return bytes(data)


def test_the_slowest_readers_are_dropped_when_too_much_is_unread() -> None:
    with closing(listening_socket(Address("127.0.0.1", 0))) as listener, ExitStack() as stack:
        server = PlainServer(listener, answer, deadline_seconds=3600, most_bytes=3 * len(BIG))
        server.start()
        readers = []
        for number in range(1, 6):
            readers.append(stack.enter_context(connect(address_of(listener).port)))
            readers[-1].sendall(b"GET /own HTTP/1.1\r\n\r\n")
            until(lambda: sum(connection.is_answered for connection in connections_of(server)) == min(number, 2))  # noqa: B023 - used at once
        assert len(read_to_end(readers[-1])) > len(BIG)
        assert sum(len(read_to_end(reader)) > len(BIG) for reader in readers[:-1]) == 1
        server.stop()


def test_texts_with_common_pieces_are_counted_separately() -> None:
    common = b"x" * 100
    texts = [PlainAnswer(200, b"", further=(piece * 20_000_000, common)) for piece in (b"1", b"2")]
    with closing(listening_socket(Address("127.0.0.1", 0))) as listener, ExitStack() as stack:
        server = PlainServer(listener, lambda _path, _query: texts.pop(), deadline_seconds=3600)
        server.start()
        for _ in range(2):
            stack.enter_context(connect(address_of(listener).port)).sendall(b"GET / HTTP/1.1\r\n\r\n")
        until(lambda: not texts and len(server._connections) == 1)
        server.stop()


def test_the_answer_of_a_dropped_reader_takes_no_memory() -> None:
    with closing(listening_socket(Address("127.0.0.1", 0))) as listener, connect(address_of(listener).port) as reader:
        server = PlainServer(listener, answer, deadline_seconds=3600)
        server.start()
        reader.sendall(b"GET /own HTTP/1.1\r\n\r\n")
        until(lambda: any(connection.is_answered for connection in connections_of(server)))
        [connection] = connections_of(server)
        server.stop()
        assert (connection.pieces, connection._outbox) == ((), [])


def test_readers_of_one_text_share_it_and_their_number_is_limited() -> None:
    with closing(listening_socket(Address("127.0.0.1", 0))) as listener, ExitStack() as stack:
        server = PlainServer(listener, answer, deadline_seconds=3600, most_bytes=2 * len(BIG))
        server.start()
        for _ in range(2 * MOST_READERS):
            stack.enter_context(connect(address_of(listener).port)).sendall(b"GET /big HTTP/1.1\r\n\r\n")
        until(lambda: sum(connection.is_answered for connection in connections_of(server)) == MOST_READERS)
        assert ask(address_of(listener).port, "/metrics")[0] == 200
        server.stop()


def test_readers_of_one_text_above_the_limit_do_not_displace_each_other() -> None:
    with closing(listening_socket(Address("127.0.0.1", 0))) as listener, ExitStack() as stack:
        server = PlainServer(listener, answer, deadline_seconds=3600, most_bytes=len(BIG) // 2)
        server.start()
        former = stack.enter_context(connect(address_of(listener).port))
        former.sendall(b"GET /own HTTP/1.1\r\n\r\n")
        until(lambda: any(connection.is_answered for connection in connections_of(server)))
        readers = [stack.enter_context(connect(address_of(listener).port)) for _ in range(3)]
        for reader in readers:
            reader.sendall(b"GET /big HTTP/1.1\r\n\r\n")
        until(lambda: sum(connection.is_answered for connection in connections_of(server)) == len(readers))
        assert [len(read_to_end(reader)) > len(BIG) for reader in (*readers, former)] == [True] * 3 + [False]
        server.stop()


def test_health_is_answered_while_the_metrics_are_made() -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def make() -> Iterator[bytes]:
        begun.set()
        assert goes_on.wait(20)
        yield b"a "
        yield b"1\n"

    text = PacedText(make)
    text.start()
    with closing(listening_socket(Address("127.0.0.1", 0))) as listener, ExitStack() as stack:
        server = PlainServer(listener, answer, metrics=text)
        server.start()
        port = address_of(listener).port
        readers = [stack.enter_context(connect(port)) for _ in range(3)]
        for reader in readers:
            reader.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert begun.wait(20)
        assert ask(port, "/other")[0] == 404
        goes_on.set()
        assert [read_to_end(reader).endswith(b"\r\n\r\na 1\n") for reader in readers] == [True] * 3
        assert ask(port, "/metrics", "HEAD") == (200, b"")
        server.stop()
    text.stop()


def test_a_text_whose_failure_cannot_be_reported_does_not_end_the_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of all metrics is large, and what was made of it is held until its failure has been reported."""

    def lack_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("adapter.foundation.service.server.plain_port.paced_text._log.exception", lack_memory)
    texts = iter([b"a"])
    failures = iter([MemoryError()])

    def make() -> Iterator[bytes]:
        for failure in failures:
            raise failure
        yield from texts

    text = PacedText(make)
    text.start()
    assert text.wait(30) is None
    assert text.wait(30) == (b"a",)
    text.stop()


def test_metrics_that_cannot_be_written_are_a_500_and_the_next_request_succeeds() -> None:
    texts = iter([b"first"])
    text = PacedText(lambda: (next(texts),))
    text.start()
    with closing(listening_socket(Address("127.0.0.1", 0))) as listener:
        server = PlainServer(listener, answer, metrics=text)
        server.start()
        port = address_of(listener).port
        assert ask(port, "/metrics") == (200, b"first")
        assert ask(port, "/metrics") == (500, b"internal error\n")
        texts = iter([b"again"])
        assert ask(port, "/metrics") == (200, b"again")
        server.stop()
    text.stop()


def test_few_readers_are_not_delayed_and_many_are_paced() -> None:
    seconds = itertools.count()
    text = PacedText(lambda: (b"",), cost=lambda: 0.05 * next(seconds), burst_seconds=0.2)
    pauses = []
    for _ in range(60):
        text._serve([])
        pauses.append(text._share.pause_seconds())
    assert pauses[0] == 0
    assert 0 < pauses[-1] <= LONGEST_PAUSE_SECONDS


def test_making_texts_leaves_most_of_the_core_to_other_requests() -> None:
    """A text that takes 2 ms is made at most 2.5 times a second, so that few requests of others meet one."""
    spent = iter([0.0, 0.002])
    text = PacedText(lambda: (b"",), cost=lambda: next(spent), clock=lambda: 0.0)
    text._serve([])
    assert text._share.pause_seconds() == pytest.approx(0.4)


def test_an_endless_head_is_cut_off(port: int) -> None:
    with connect(port) as sock:
        sock.sendall(b"x" * (LARGEST_HEAD + 1))
        assert is_closed(sock)


def test_the_server_stops_while_it_is_idle() -> None:
    """While there are no requests, its thread sleeps until something happens, and the stop wakes it."""
    before = set(threading.enumerate())
    with closing(listening_socket(Address("127.0.0.1", 0))) as listener:
        server = PlainServer(listener, answer)
        server.start()
        started = {thread for thread in threading.enumerate() if thread.name == "plain-http"} - before
        server.stop()
    assert len(started) == 1
    until(lambda: not any(thread.is_alive() for thread in started))


def test_the_server_stops_while_connections_stall() -> None:
    listener = listening_socket(Address("127.0.0.1", 0))
    server = PlainServer(listener, answer)
    server.start()
    with closing(listener), connect(address_of(listener).port) as sock:
        sock.sendall(b"GET")
        server.stop()
        assert is_closed(sock)
