"""Outboxes are tested without a server around them."""

from __future__ import annotations

import contextlib
import socket
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.service.server.connections.outgoing import (
    FULL,
    PORTION,
    SMALL,
    HeldAnswers,
    Outbox,
    OutgoingTooLargeError,
)
from adapter.foundation.service.server.sockets import unacknowledged_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def outbox_and_reader(most_bytes: int = 1 << 24) -> Iterator[tuple[Outbox, socket.socket]]:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        ours.settimeout(0)
        theirs.settimeout(5)
        yield Outbox(ours, most_bytes), theirs


def received(outbox: Outbox, reader: socket.socket, count: int, step: int) -> bytes:
    """Read so many bytes while the outbox goes on sending."""
    data = b""
    while len(data) < count:
        data += reader.recv(min(step, count - len(data)))
        with contextlib.suppress(*FULL):
            while any(outbox.pieces):
                outbox.step()
    return data


sizes = st.one_of(st.integers(0, 100), st.sampled_from([SMALL - 1, SMALL, SMALL + 1, PORTION, PORTION + 1, 300_000]))


@settings(max_examples=60, deadline=None)
@given(st.lists(sizes, min_size=1, max_size=5), st.sampled_from([100, 4096, 100_000]))
def test_every_byte_arrives_once_and_in_order(lengths: list[int], step: int) -> None:
    parts = [bytes([number]) * length for number, length in enumerate(lengths)]
    with outbox_and_reader() as (outbox, reader):
        for part in parts:
            outbox.sendall(part)
        done = outbox.flush()
        whole = b"".join(parts)
        assert received(outbox, reader, len(whole), max(step, len(whole) // 100)) == whole
        assert outbox.unsent == 0
        assert done or len(whole) > 100


def test_a_large_body_is_not_copied() -> None:
    body = bytes(1_000_000)
    with outbox_and_reader() as (outbox, _):
        outbox.sendall(b"head")
        outbox.sendall(body)
        assert not outbox.flush()
        assert [piece.obj for piece in outbox.pieces] == [body]
        assert next(iter(outbox.pieces)).obj is body


def test_data_already_offered_to_the_socket_is_not_replaced() -> None:
    with outbox_and_reader() as (outbox, reader):
        outbox.sendall(b"a" * 50_000)
        assert not outbox.flush()
        outbox.sendall(b"never")
        outbox.replace(b"instead")
        assert received(outbox, reader, 50_007, 4096) == b"a" * 50_000 + b"instead"


def test_more_than_a_connection_may_hold_is_refused() -> None:
    with outbox_and_reader(100) as (outbox, _):
        outbox.sendall(b"x" * 100)
        with pytest.raises(OutgoingTooLargeError, match="more than 100 bytes"):
            outbox.sendall(b"x")


def test_acknowledged_bytes_count_as_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as reader:
        reader.connect(listener.getsockname())
        sock, _ = listener.accept()
        with closing(sock):
            outbox = Outbox(sock)
            outbox.sendall(b"x" * 1000)
            assert outbox.flush()
            assert len(reader.recv(1000)) == 1000
            while unacknowledged_bytes(sock):
                pass
            assert [outbox.newly_read(), outbox.newly_read()] == [1000, 0]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=30))
def test_held_bytes_are_those_of_bodies_with_waiting_readers(steps: list[tuple[int, bool]]) -> None:
    bodies = [bytes(size) for size in (10, 200, 3000, 40000)]
    held = HeldAnswers()
    waiting: list[tuple[int, Outbox]] = []
    with socket.socket() as sock:
        for which, comes in steps:
            if comes:
                outbox = Outbox(sock)
                outbox.sendall(bodies[which])
                held.hold(outbox)
                waiting.append((which, outbox))
            elif waiting:
                _, outbox = waiting.pop(which % len(waiting))
                held.release(outbox)
                held.release(outbox)
            assert held.total == sum(len(bodies[number]) for number in {number for number, _ in waiting})
