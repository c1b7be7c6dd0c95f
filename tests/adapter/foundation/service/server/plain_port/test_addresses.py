"""The plain port: an address with very many connections loses its own, and no others."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.service.server.addresses import Address, address_of, listening_socket
from adapter.foundation.service.server.plain_port.paced_text import PacedText
from adapter.foundation.service.server.plain_port.plain_answers import PlainAnswer
from adapter.foundation.service.server.plain_port.plain_server import MOST_CONNECTIONS, MOST_READERS, PlainServer
from tests.adapter.foundation.service.servers import ask, connect

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUEST = b"GET /metrics HTTP/1.1\r\n\r\n"
TEXT = b"x" * 20_000_000


def connect_from(source: str, port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20, source_address=(source, 0))


def read_to_end(sock: socket.socket) -> int:
    """Return how many bytes come until the server closes the connection."""
    found = 0
    while more := sock.recv(1_000_000):
        found += len(more)
    return found


@pytest.mark.parametrize("sent", [b"", b"GET /metr", REQUEST], ids=["nothing", "half a head", "requests"])
def test_a_client_waiting_for_metrics_is_not_displaced_by_many_connections_of_another_address(sent: bytes) -> None:
    """In an attack, 300 connections a second of one pod kept Prometheus from ever getting the metrics."""
    begun, goes_on = threading.Event(), threading.Event()

    def make() -> Iterator[bytes]:
        begun.set()
        assert goes_on.wait(20)
        yield b"a 1\n"

    text = PacedText(make)
    text.start()
    with closing(listening_socket(Address("127.0.0.1", 0))) as listener, ExitStack() as stack:
        server = PlainServer(listener, lambda _path, _query: None, metrics=text)
        server.start()
        port = address_of(listener).port
        prometheus = stack.enter_context(connect_from("127.0.0.2", port))
        prometheus.sendall(REQUEST)
        assert begun.wait(20)
        for _ in range(MOST_CONNECTIONS + 20):
            stack.enter_context(connect(port)).sendall(sent)
        assert ask(port, "/other")[0] == 404, "all of them have been accepted"
        goes_on.set()
        assert read_to_end(prometheus) > 0
        server.stop()
    text.stop()


def test_a_slow_reader_is_not_displaced_by_many_readers_of_another_address() -> None:
    with closing(listening_socket(Address("127.0.0.1", 0))) as listener, ExitStack() as stack:
        server = PlainServer(listener, lambda _path, _query: PlainAnswer(200, TEXT), deadline_seconds=3600)
        server.start()
        port = address_of(listener).port
        prometheus = stack.enter_context(connect_from("127.0.0.2", port))
        prometheus.sendall(REQUEST)
        for _ in range(2 * MOST_READERS):
            reader = stack.enter_context(connect(port))
            reader.sendall(REQUEST)
            assert reader.recv(1_000_000), "it has read more than the first"
        assert read_to_end(prometheus) > len(TEXT)
        server.stop()
