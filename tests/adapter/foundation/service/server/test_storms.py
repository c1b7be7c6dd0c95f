"""Storms of new connections from one address: a client at another one is answered soon, and none is shut out."""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
import socket
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.service.server.connections.connection import Connection
from adapter.foundation.service.server.connections.stages import Deadlines, Stage
from adapter.foundation.service.server.connections.waiting_connections import WaitingConnections
from tests.adapter.foundation.service.server.test_hostile_clients import client_hello
from tests.adapter.foundation.service.servers import (
    NEVER,
    PATIENCE,
    Certificates,
    Server,
    get,
    is_closed,
    read_answer,
    running_server,
)
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STORM = 400
OTHER_ADDRESS = "127.0.0.2"


def other_client_of(server: Server) -> socket.socket:
    """Return a connection from the address of the storm."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE, source_address=(OTHER_ADDRESS, 0))


def answered(sockets: list[socket.socket]) -> int:
    """Return how many of the sockets have something to read."""
    poll = select.poll()
    for sock in sockets:
        poll.register(sock, select.POLLIN)
    return len(poll.poll(0))


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stop a process for the block, so that whatever comes waits in the kernel's queue."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_the_scheduler_is_answered_before_a_storm_that_arrived_earlier(
    tmp_path: Path, certificates: Certificates
) -> None:
    hello = client_hello()
    with (
        running_server(tmp_path, certificates, deadlines=NEVER, reserved_threads=2) as server,
        contextlib.ExitStack() as stack,
    ):
        context = server.client_context(certificates.client)
        with server.connect(context) as before:
            pid = get(before)[1]["pid"]
            # So that others wait for it: it needs a reserved thread.
            before.sendall(b"POST /known HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
            assert read_answer(before) == (200, b"{}")
        with stopped(pid):
            storm = [stack.enter_context(other_client_of(server)) for _ in range(STORM)]
            for sock in storm:
                sock.sendall(hello)
            again = stack.enter_context(server.tcp())
        with context.wrap_socket(again, server_hostname="localhost") as scheduler:
            assert get(scheduler)[0] == 200
            assert answered(storm) < STORM
        until(lambda: answered(storm) == STORM)


@pytest.fixture(name="waiting")
def _waiting() -> Iterator[WaitingConnections]:
    with selectors.DefaultSelector() as poller:
        yield WaitingConnections(poller, Deadlines())


@pytest.fixture(name="sock")
def _sock() -> Iterator[socket.socket]:
    with contextlib.closing(socket.socket()) as sock:
        yield sock


def entered(waiting: WaitingConnections, sock: socket.socket, host: str, stage: Stage) -> Connection:
    """Return a connection from an address, in a stage, whose socket is polled for nothing."""
    conn = Connection(sock, (host, 1), ("", 2))
    waiting.put(conn, stage, events=0)
    return conn


@pytest.mark.parametrize("stage", [Stage.HANDSHAKE, Stage.HEAD, Stage.BODY])
@pytest.mark.parametrize("mine", [Stage.HANDSHAKE, Stage.HEAD, Stage.BODY])
def test_a_storm_displaces_its_own_oldest_connection(
    waiting: WaitingConnections, sock: socket.socket, stage: Stage, mine: Stage
) -> None:
    scheduler = entered(waiting, sock, "127.0.0.1", mine)
    first, *_ = [entered(waiting, sock, OTHER_ADDRESS, stage) for _ in range(3)]
    assert waiting.least_missed() is first
    waiting.take(first)
    assert waiting.least_missed() is not scheduler
    assert waiting.count_unfinished() == 3


def test_an_idle_connection_of_many_is_dropped_before_the_only_one_of_another_address(
    waiting: WaitingConnections, sock: socket.socket
) -> None:
    entered(waiting, sock, "127.0.0.1", Stage.IDLE)
    first, *_ = [entered(waiting, sock, OTHER_ADDRESS, Stage.IDLE) for _ in range(3)]
    assert waiting.least_missed() is first


def test_a_connection_of_an_unknown_address_is_dropped_before_those_of_a_familiar_one(
    waiting: WaitingConnections, sock: socket.socket
) -> None:
    known = entered(waiting, sock, "127.0.0.1", Stage.HEAD)
    entered(waiting, sock, "127.0.0.1", Stage.HEAD)
    waiting.familiar.note(known.address)
    unknown_client = entered(waiting, sock, OTHER_ADDRESS, Stage.HEAD)
    assert waiting.least_missed() is unknown_client


@pytest.mark.parametrize("is_known", [True, False])
def test_a_request_of_a_known_client_makes_its_address_familiar(
    waiting: WaitingConnections,
    sock: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
    is_known: bool,  # noqa: FBT001 - a column of the table
) -> None:
    monkeypatch.setattr(Connection, "is_known", is_known)
    conn = entered(waiting, sock, "127.0.0.1", Stage.HEAD)
    assert conn.address not in waiting.familiar
    waiting.take(conn)
    waiting.put(conn, Stage.IDLE, events=0)
    assert (conn.address in waiting.familiar) is is_known


def test_a_closed_connection_does_not_wait_for_a_handshake(waiting: WaitingConnections, sock: socket.socket) -> None:
    conn = entered(waiting, sock, OTHER_ADDRESS, Stage.HANDSHAKE)
    waiting.park(conn)
    waiting.take(conn)
    assert waiting.newcomers.first() is None
    assert waiting.least_missed() is None


def test_a_client_that_has_hung_up_gets_no_handshake(server: Server) -> None:
    with server.connect() as kept:
        pid = get(kept)[1]["pid"]
    with stopped(pid):
        sock = server.tcp()
        sock.sendall(client_hello())
        sock.shutdown(socket.SHUT_WR)
    with sock:
        assert is_closed(sock), "the server's part of a handshake would come first"
