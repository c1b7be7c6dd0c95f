"""Clients that are not known yet, and the heads of their requests."""

from __future__ import annotations

import contextlib
import socket
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.service.server.connections.connection import Connection
from adapter.foundation.service.server.connections.heads import LARGEST_UNAUTHENTICATED_HEAD
from adapter.foundation.service.server.connections.held_bytes import MOST_UNAUTHENTICATED_BYTES, HeadBytes
from tests.adapter.foundation.service.servers import (
    NEVER,
    Certificates,
    Server,
    dropped,
    get,
    is_closed,
    read_answer,
    running_server,
)
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

HEADER = b"X-A: " + 8000 * b"a" + b"\r\n"


def head(size: int) -> bytes:
    """Return the beginning of a request without its end."""
    return b"GET /facts HTTP/1.1\r\nHost: localhost\r\n" + size // len(HEADER) * HEADER


def test_an_unknown_client_may_send_a_head_large_enough_for_any_token(server: Server) -> None:
    with server.connect() as sock:
        sock.sendall(head(LARGEST_UNAUTHENTICATED_HEAD - 8000) + b"\r\n")
        assert read_answer(sock)[0] == 200


def test_an_unknown_client_with_a_too_large_head_is_refused_early(server: Server) -> None:
    with server.connect() as sock:
        sock.sendall(head(LARGEST_UNAUTHENTICATED_HEAD + 2 * len(HEADER)))
        assert read_answer(sock)[0] == 431
        assert is_closed(sock)


def test_a_client_with_a_certificate_may_send_a_larger_head(server: Server, certificates: Certificates) -> None:
    with server.connect(server.client_context(certificates.client)) as sock:
        sock.sendall(head(4 * LARGEST_UNAUTHENTICATED_HEAD) + b"\r\n")
        assert read_answer(sock)[0] == 200


def test_the_total_size_of_heads_of_unknown_clients_is_bounded(tmp_path: Path, certificates: Certificates) -> None:
    size = LARGEST_UNAUTHENTICATED_HEAD - 2 * len(HEADER)
    count = MOST_UNAUTHENTICATED_BYTES // size + 30
    with (
        running_server(tmp_path, certificates, deadlines=NEVER, tls=False) as server,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(count):
            with contextlib.suppress(ConnectionError):
                stack.enter_context(server.tcp()).sendall(head(size))
        until(lambda: dropped(server, "heads_crowded_out") >= 20)
        with server.tcp() as new:
            assert get(new)[0] == 200


class UnknownClient(Connection):
    """A connection whose client shows a certificate or none, as the test says."""

    is_known = False


class Known(Connection):
    is_known = True


@pytest.mark.parametrize(("kind", "other"), [(UnknownClient, Known), (Known, UnknownClient)])
def test_the_largest_head_is_dropped_first_and_heads_of_the_other_kind_stay(
    kind: type[Connection], other: type[Connection]
) -> None:
    with closing(socket.socket()) as sock:
        heads = HeadBytes(100, 100)
        small, large, apart = (made(sock, ("", 1), ("", 2)) for made in (kind, kind, other))
        for conn, size in ((small, 40), (large, 60), (apart, 100)):
            conn.head += bytes(size)
            heads.of(conn).note(conn)
        assert heads.of(small).one_too_many() is None
        small.head += b"x"
        heads.of(small).note(small)
        assert heads.of(small).one_too_many() is large
        assert heads.of(apart).one_too_many() is None
        heads.forget(large)
        assert heads.of(small).one_too_many() is None


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 60)), max_size=40))
def test_forgotten_heads_are_not_counted(steps: list[tuple[int, int]]) -> None:
    with closing(socket.socket()) as sock:
        heads = HeadBytes(100)
        unknown_clients = [UnknownClient(sock, ("", 1), ("", 2)) for _ in range(5)]
        sizes: dict[int, int] = {}
        for which, growth in steps:
            conn = unknown_clients[which]
            if growth < 0:
                heads.forget(conn)
                conn.forget_head()
                sizes.pop(which, None)
                continue
            conn.head += bytes(growth)
            heads.of(conn).note(conn)
            sizes[which] = len(conn.head)
            assert (heads.of(conn).one_too_many() is not None) == (sum(sizes.values()) > 100)
