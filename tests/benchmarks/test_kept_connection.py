"""The connection of a benchmark's client, in front of servers that close it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from benchmarks.kept_connection import KeptConnection, get
from tests.support.raw_server import raw_server

if TYPE_CHECKING:
    from tests.support.raw_server import Peer, RawServer


def connected(server: RawServer) -> KeptConnection:
    port = urlsplit(server.url).port
    assert port is not None
    return KeptConnection(port)


def answers_once(peer: Peer) -> None:
    peer.read()
    peer.answer(f"{peer.number}".encode())


def test_a_connection_that_was_closed_between_requests_is_opened_again() -> None:
    with raw_server(answers_once) as server, connected(server) as connection:
        bodies = [connection.ask(get("/")).body for _ in range(3)]
    assert bodies == [b"0", b"1", b"2"]


def never_answers(peer: Peer) -> None:
    peer.read()


def test_a_server_that_never_answers_is_not_asked_again() -> None:
    with raw_server(never_answers) as server, connected(server) as connection:
        with pytest.raises(ConnectionError):
            connection.ask(get("/"))
        assert server.connections == 1


def test_a_connection_that_is_cut_within_an_answer_is_an_error() -> None:
    def script(peer: Peer) -> None:
        peer.read()
        peer.answer(b"whole")
        peer.read()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart")

    with raw_server(script) as server, connected(server) as connection:
        assert connection.ask(get("/")).body == b"whole"
        with pytest.raises(ConnectionError, match="within an answer"):
            connection.ask(get("/"))
        assert server.connections == 1
