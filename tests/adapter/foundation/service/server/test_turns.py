"""The order in which the poller thread advances connections that are ready at the same time."""

from __future__ import annotations

import errno
import socket
import ssl
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from adapter.foundation.service.server import accepting, worker
from adapter.foundation.service.server.accepting import TURN_SECONDS
from adapter.foundation.service.server.connections.bodies import ArrivingBody, BodyPlan
from adapter.foundation.service.server.connections.connection import Connection
from adapter.foundation.service.server.connections.limited_work import LimitedWork
from adapter.foundation.service.server.connections.stages import Deadlines, Stage
from adapter.foundation.service.server.connections.waiting_room import WaitingRoom
from adapter.foundation.service.server.worker import MOST_PER_TURN, TidewatchWorker

if TYPE_CHECKING:
    import selectors
    from collections.abc import Iterator


def ignored(*_: object) -> None:
    """Do nothing."""


class Turn(TidewatchWorker):
    """One turn of the poller: all these connections, and the listener before them, are ready; nothing is done."""

    def __init__(self, ready: list[Connection], listener: socket.socket) -> None:
        self.advanced: list[Connection | str] = []
        self.seconds_each = 0.0
        self.now = 0.0
        self._accept_share = self._handshake_share = self._transfer_share = LimitedWork(lambda: False, 1.0)
        keys = [(SimpleNamespace(data=data, fileobj=listener), 1) for data in (self.accept, *ready)]
        self.poller = cast(
            "selectors.BaseSelector",
            SimpleNamespace(select=lambda _timeout: keys, register=ignored, unregister=ignored),
        )
        self._room = WaitingRoom(self.poller, Deadlines())

    def accept(self, _listener: socket.socket) -> None:
        self.advanced.append("accept")

    def _advance(self, conn: Connection) -> None:
        self.advanced.append(conn)
        self.now += self.seconds_each


class Unpollable(TidewatchWorker):
    """A worker whose kernel watches no further socket; each step waits for the client."""

    def __init__(self, waiting: type[ssl.SSLError]) -> None:
        self.ended: list[tuple[Connection, str]] = []
        self._waiting = waiting
        poller = cast("selectors.BaseSelector", SimpleNamespace(register=self.refuse, modify=self.refuse))
        self._room = WaitingRoom(poller, Deadlines())

    def refuse(self, *_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def _step(self, _conn: Connection) -> None:
        raise self._waiting

    def _drop(self, conn: Connection, reason: str = "", _error: OSError | None = None) -> None:
        self.ended.append((conn, reason))


@pytest.fixture(name="sock")
def _sock() -> Iterator[socket.socket]:
    with closing(socket.socket()) as sock:
        yield sock


def connection(sock: socket.socket, stage: Stage, steps: int = 0) -> Connection:
    conn = Connection(sock, ("", 1), ("", 2))
    conn.stage, conn.steps = stage, steps
    return conn


def test_kept_and_reserved_ones_come_first_and_new_connections_last(sock: socket.socket) -> None:
    strangers = [connection(sock, stage) for stage in MOST_PER_TURN]
    kept, scheduler = connection(sock, Stage.IDLE), connection(sock, Stage.BODY, steps=100)
    scheduler.body = ArrivingBody(BodyPlan(1000, 1000), 1000)
    turn = Turn([*strangers, scheduler, kept], sock)
    turn._dispatch(0.0)
    assert turn.advanced == [scheduler, kept, *strangers, "accept"]


def test_those_with_the_fewest_advances_come_first(sock: socket.socket) -> None:
    often, seldom = (connection(sock, Stage.HEAD, steps) for steps in (5, 1))
    turn = Turn([often, seldom], sock)
    turn._dispatch(0.0)
    assert turn.advanced[:2] == [seldom, often]


def test_transfers_of_others_are_paused_once_their_share_is_used_up_and_go_on_later(sock: socket.socket) -> None:
    reader, head, scheduler = (connection(sock, stage) for stage in (Stage.SEND, Stage.HEAD, Stage.BODY))
    scheduler.body = ArrivingBody(BodyPlan(1000, 1000), 1000)
    reader.events = 1
    time, turn = SimpleNamespace(now=0.0), Turn([reader, head, scheduler], sock)
    turn._transfer_share = LimitedWork(lambda: True, 0.1, lambda: time.now, lambda: 0.0)
    turn._transfer_share._share.spend(1.0)
    turn._dispatch(0.0)
    assert (turn.advanced, reader.events) == ([scheduler, head, "accept"], 0)
    time.now = 20.0
    turn._dispatch(0.0)
    assert (turn.advanced[3:], reader.events) == ([scheduler, head, reader, "accept"], 1)


def test_a_turn_ends_in_time_and_yet_every_stage_goes_on(sock: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = Turn([connection(sock, stage) for stage in MOST_PER_TURN for _ in range(100)], sock)
    turn.seconds_each = TURN_SECONDS / 2
    for module in (accepting, worker):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: turn.now))
    turn._dispatch(0.0)
    stages = [conn.stage for conn in turn.advanced if isinstance(conn, Connection)]
    assert stages == [Stage.HANDSHAKE, *MOST_PER_TURN]


@pytest.mark.parametrize("waiting", [ssl.SSLWantReadError, ssl.SSLWantWriteError])
def test_a_connection_that_the_kernel_refuses_to_watch_ends_alone(
    sock: socket.socket, waiting: type[ssl.SSLError]
) -> None:
    conn, server = connection(sock, Stage.HANDSHAKE), Unpollable(waiting)
    server._advance(conn)
    assert server.ended == [(conn, "not_pollable")]
