"""The poller and gunicorn's parser must agree on where the head of a request ends."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import ParseException
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.service.server.connections.connection import Connection
from adapter.foundation.service.server.connections.stages import Deadlines, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

GOOD = b"GET /a HTTP/1.1\r\nHost: h\r\nX-Remote-Group: a\r\nX-Remote-Group: b\r\n\r\n"


@pytest.fixture
def pair() -> Iterator[tuple[Connection, socket.socket]]:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        ours.settimeout(0)
        yield Connection(ours, ("127.0.0.1", 1), ("127.0.0.1", 2)), theirs


def parse(conn: Connection) -> str:
    """Parse without reading from the socket; return the target, or the reason why there is none."""
    parser = conn.begin_request(Config(), 0)  # type: ignore[no-untyped-call] # gunicorn has no types
    try:
        return str(next(parser).uri)
    except ParseException as e:
        return type(e).__name__


def test_a_head_is_complete_only_with_its_last_byte(pair: tuple[Connection, socket.socket]) -> None:
    conn, client = pair
    for byte in GOOD[:-1]:
        client.sendall(bytes([byte]))
        assert not conn.read_head()
    client.sendall(GOOD[-1:])
    assert conn.read_head()
    assert parse(conn) == "/a"


def test_bytes_after_the_head_are_kept_for_the_next_request(pair: tuple[Connection, socket.socket]) -> None:
    conn, client = pair
    client.sendall(GOOD + GOOD.replace(b"/a", b"/b") + b"GET /c")
    assert conn.read_head()
    targets = []
    while conn.head_is_whole():
        targets.append(parse(conn))
        assert conn.body_is_read()
        conn.end_request()
    assert targets == ["/a", "/b"]
    assert bytes(conn.head) == b"GET /c"


def test_no_data_yet_and_end_of_stream_are_distinguished(pair: tuple[Connection, socket.socket]) -> None:
    conn, client = pair
    with pytest.raises(BlockingIOError):
        conn.read_head()
    client.close()
    with pytest.raises(EOFError):
        conn.read_head()


def test_a_body_that_has_not_arrived_is_not_waited_for(pair: tuple[Connection, socket.socket]) -> None:
    conn, client = pair
    client.sendall(GOOD[:-2] + b"Content-Length: 5\r\n\r\nab")
    assert conn.read_head()
    assert parse(conn) == "/a"
    assert not conn.body_is_read()


pieces = st.sampled_from(
    [b"GET /a HTTP/1.1", b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"Host: h", b"X: y", b" ", b"x", b":", b"\x00", b"\xff"]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(pieces, max_size=12).map(b"".join), st.data())
def test_a_complete_head_is_all_that_the_parser_needs(text: bytes, data: st.DataObject) -> None:
    conn = Connection(socket.socket(), ("127.0.0.1", 1), ("127.0.0.1", 2))
    with closing(conn.sock):
        cut = data.draw(st.integers(0, len(text)))
        conn.head += text[:cut]
        early = conn.head_is_whole()
        conn.head += text[cut:]
        if conn.head_is_whole():
            # Out of bytes it would raise TimeoutError, since its time is over before it begins.
            parse(conn)
        else:
            assert not early


def test_a_bare_line_feed_is_found_however_the_bytes_are_split(pair: tuple[Connection, socket.socket]) -> None:
    conn, client = pair
    for byte in b"GET / HTTP/1.1\r\nX: y":
        client.sendall(bytes([byte]))
        assert not conn.read_head()
    client.sendall(b"\n")
    assert conn.read_head()
    assert parse(conn) == "InvalidHeader"


@pytest.mark.parametrize("stage", [Stage.REQUEST, Stage.CLOSED])
def test_stages_outside_the_waiting_connections_have_no_deadline(stage: Stage) -> None:
    with pytest.raises(ValueError, match="has no time limit"):
        Deadlines().of(stage)
