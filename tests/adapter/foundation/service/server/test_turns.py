"""The order in which the poller thread advances connections that are ready at the same time."""

from __future__ import annotations

import errno
import selectors
import socket
import ssl
from concurrent.futures import Future
from contextlib import closing
from math import inf
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from adapter.foundation.service.server import accepting, worker
from adapter.foundation.service.server.accepting import TURN_SECONDS
from adapter.foundation.service.server.connections.bodies import ArrivingBody, BodyLimits, BodyPlan
from adapter.foundation.service.server.connections.connection import Connection
from adapter.foundation.service.server.connections.held_bytes import held_bodies
from adapter.foundation.service.server.connections.limited_work import LimitedWork
from adapter.foundation.service.server.connections.outgoing import HeldAnswers, OutgoingLimits
from adapter.foundation.service.server.connections.stages import Deadlines, Stage
from adapter.foundation.service.server.connections.waiting_connections import WaitingConnections
from adapter.foundation.service.server.server_settings import ConnectionLimits
from adapter.foundation.service.server.shutdown_phases import Ending, Phase
from adapter.foundation.service.server.worker import MOST_PER_TURN, TidewatchWorker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapter.foundation.service.server.process import ServerApplication
    from adapter.foundation.service.server.request_threads import RequestThreads


def ignored(*_: object) -> None:
    """Do nothing."""


class Turn(TidewatchWorker):
    """A turn of the poller in which the listener, the connections `first` and the connections `others` are ready."""

    def __init__(self, listener: socket.socket, first: list[Connection], others: list[Connection]) -> None:
        self.advanced: list[Connection | str] = []
        self.polled_others: list[bool] = []
        self.turns = 0
        self.seconds_each = 0.0
        self.now = 0.0
        self.held_seconds = 0.0
        self._accept_share = self._handshake_share = self._others_share = LimitedWork(lambda: False, 1.0)
        self._threads = cast(
            "RequestThreads",
            SimpleNamespace(
                seconds_to_others=lambda: self.held_seconds,
                others_had_turn=self._count,
                seconds_to_next_start=lambda: inf,
                start_waiting=ignored,
            ),
        )
        self._others = poller_of(others)
        self._others_are_ready = True
        self.poller = poller_of([self.accept, *first], listener)
        self._waiting_connections = WaitingConnections(self.poller, Deadlines(), self._others)
        self._ending = Ending(delay_seconds=0.0, drain_seconds=0.0)
        self._phase, self._in_request, self._accept_again = Phase.SERVING, 0, 0.0
        self._limits = ConnectionLimits()
        self._is_others_turn = True

    def _count(self) -> None:
        self.turns += 1

    def accept(self, _listener: socket.socket) -> None:
        self.advanced.append("accept")

    def set_accept_enabled(self, enabled: bool) -> None:  # noqa: FBT001 - gunicorn's signature
        """Do nothing: there is no real listener."""

    def _watch_others(self, *, enabled: bool) -> None:
        self.polled_others.append(enabled)

    def _advance(self, conn: Connection) -> None:
        self.advanced.append(conn)
        self.now += self.seconds_each


def poller_of(ready: Sequence[object], listener: object = None) -> selectors.EpollSelector:
    """Return a poller that finds all of these ready."""
    keys = [(SimpleNamespace(data=data, fileobj=listener), 1) for data in ready]
    found = SimpleNamespace(select=lambda _timeout: keys, register=ignored, unregister=ignored)
    return cast("selectors.EpollSelector", found)


class Unpollable(TidewatchWorker):
    """A worker whose kernel watches no further socket; each step waits for the client."""

    def __init__(self, waiting: type[ssl.SSLError]) -> None:
        self.ended: list[tuple[Connection, str]] = []
        self._waiting = waiting
        poller = cast("selectors.BaseSelector", SimpleNamespace(register=self.refuse, modify=self.refuse))
        self._waiting_connections = WaitingConnections(poller, Deadlines())
        self._phase, self._in_request = Phase.SERVING, 1
        self._threads = cast("RequestThreads", SimpleNamespace(release_thread=ignored))
        self._bodies, self._held = held_bodies(BodyLimits()), HeldAnswers()
        self._answers = OutgoingLimits()

    def refuse(self, *_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def _step(self, _conn: Connection) -> None:
        raise self._waiting

    def _drop(self, conn: Connection, reason: str = "", _error: OSError | None = None) -> None:
        self.ended.append((conn, reason))


class Late(TidewatchWorker):
    """A worker that gets to its connections only after they have expired."""

    def __init__(self, poller: selectors.BaseSelector) -> None:
        self.ended: list[str] = []
        self.served: list[Connection] = []
        self._deadlines = Deadlines()
        self._waiting_connections = WaitingConnections(poller, self._deadlines)
        self._bodies, self._answers = held_bodies(BodyLimits()), OutgoingLimits()
        self.app = cast("ServerApplication", SimpleNamespace(options=SimpleNamespace(bodies=BodyLimits())))

    def _submit_unless_busy(self, conn: Connection) -> None:
        self._submit(conn)

    def _submit(self, conn: Connection) -> None:
        self._waiting_connections.take(conn)
        conn.stage = Stage.REQUEST
        self.served.append(conn)

    def _cut_off(self, _conn: Connection, reason: str) -> None:
        self.ended.append(reason)

    def _refuse(self, _conn: Connection, _status: int, _phrase: str, reason: str) -> None:
        self.ended.append(reason)


@pytest.fixture(name="sock")
def _sock() -> Iterator[socket.socket]:
    with closing(socket.socket()) as sock:
        yield sock


def use_its_time(turn: Turn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the turn take the time that it states, and not the machine's."""
    for module in (accepting, worker):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: turn.now))


def connection(sock: socket.socket, stage: Stage, steps: int = 0) -> Connection:
    conn = Connection(sock, ("", 1), ("", 2))
    conn.stage, conn.steps = stage, steps
    return conn


def test_priority_connections_are_advanced_first_and_new_connections_last(
    sock: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown_clients = [connection(sock, stage) for stage in (Stage.HANDSHAKE, *MOST_PER_TURN)]
    kept, scheduler = connection(sock, Stage.IDLE), connection(sock, Stage.BODY, steps=100)
    turn = Turn(sock, [scheduler, kept], unknown_clients)
    use_its_time(turn, monkeypatch)
    turn._dispatch(0.0)
    assert turn.advanced == [scheduler, kept, *unknown_clients, "accept"]


def test_connections_with_the_fewest_advances_come_first(sock: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    often, seldom = (connection(sock, Stage.HEAD, steps) for steps in (5, 1))
    turn = Turn(sock, [], [often, seldom])
    use_its_time(turn, monkeypatch)
    turn._dispatch(0.0)
    assert turn.advanced[:2] == [seldom, often]


def test_other_connections_wait_while_a_reserved_thread_answers(sock: socket.socket) -> None:
    unknown_client, scheduler = connection(sock, Stage.HEAD), connection(sock, Stage.BODY)
    turn = Turn(sock, [scheduler], [unknown_client])
    turn.held_seconds = 0.001
    turn._dispatch(0.0)
    assert turn.advanced == [scheduler]
    turn.held_seconds = 0.0
    turn._dispatch(0.0)
    assert turn.advanced == [scheduler, scheduler, unknown_client, "accept"]


def test_a_turn_begins_only_after_other_connections_were_polled(sock: socket.socket) -> None:
    """A hold ends while unknown clients are not polled; a turn without them would begin the next hold."""
    unknown_client = connection(sock, Stage.HEAD)
    turn = Turn(sock, [], [unknown_client])
    turn.held_seconds = 0.001
    turn._longest_wait()
    turn.held_seconds = 0.0
    turn._dispatch(0.0)
    assert (turn.advanced, turn.turns) == ([], 0)
    turn._longest_wait()
    turn._dispatch(0.0)
    assert (turn.advanced, turn.turns) == ([unknown_client, "accept"], 1)


def test_other_connections_are_not_polled_once_their_share_of_the_time_is_used_up(sock: socket.socket) -> None:
    time, turn = SimpleNamespace(now=0.0), Turn(sock, [], [])
    turn._others_share = LimitedWork(lambda: True, 0.1, lambda: time.now, lambda: 0.0)
    turn._others_share._share.spend(0.2)
    assert turn._longest_wait() == pytest.approx(1.0), "a tenth of a core pays 0.1 s of debt in a second"
    time.now = 1.1
    turn._longest_wait()
    assert turn.polled_others == [False, True]


def test_a_turn_ends_in_time_and_still_advances_every_stage(
    sock: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = Turn(sock, [], [connection(sock, stage) for stage in (Stage.HANDSHAKE, *MOST_PER_TURN) for _ in range(100)])
    turn.seconds_each = TURN_SECONDS / 2
    use_its_time(turn, monkeypatch)
    turn._dispatch(0.0)
    stages = [conn.stage for conn in turn.advanced if isinstance(conn, Connection)]
    assert stages == [Stage.HANDSHAKE, Stage.HANDSHAKE, *MOST_PER_TURN]


@pytest.mark.parametrize("waiting", [ssl.SSLWantReadError, ssl.SSLWantWriteError])
def test_only_a_connection_that_cannot_be_polled_is_dropped(sock: socket.socket, waiting: type[ssl.SSLError]) -> None:
    conn, server = connection(sock, Stage.HANDSHAKE), Unpollable(waiting)
    server._advance(conn)
    assert server.ended == [(conn, "not_pollable")]


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("unsent", [True, False])
def test_only_a_connection_that_cannot_be_polled_after_a_request_is_dropped(
    sock: socket.socket, *, kept: bool, unsent: bool
) -> None:
    conn, server, done = connection(sock, Stage.REQUEST), Unpollable(ssl.SSLWantReadError), Future[bool]()
    conn.outbox.bodies = (b"unsent",) if unsent else ()
    done.set_result(kept)
    server.finish_request(conn, done)
    assert server.ended == [(conn, "not_pollable")]


REQUEST = b"GET /facts HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize(
    ("stage", "arrived", "served", "ended"),
    [
        (Stage.HEAD, REQUEST, 1, []),
        (Stage.IDLE, REQUEST, 1, []),
        (Stage.BODY, b"{}", 1, []),
        (Stage.HEAD, b"", 0, ["head_timeout"]),
        (Stage.HEAD, REQUEST[:5], 0, ["head_timeout"]),
        (Stage.IDLE, b"", 0, ["idle_timeout"]),
        (Stage.IDLE, REQUEST[:5], 0, []),
        (Stage.BODY, b"{", 0, ["body_timeout"]),
    ],
)
def test_data_that_arrived_before_a_late_check_still_counts(
    stage: Stage, arrived: bytes, served: int, ended: list[str]
) -> None:
    """A process that had no processor time closes no connection because of what it has not read yet."""
    ours, theirs = socket.socketpair()
    with ours, theirs, selectors.DefaultSelector() as poller:
        ours.settimeout(0)
        conn, late = connection(ours, stage), Late(poller)
        conn.body = ArrivingBody(BodyPlan(2, 2), 2) if stage is Stage.BODY else None
        late._waiting_connections.put(conn, stage)
        theirs.sendall(arrived)
        conn.expires = -inf
        late._expire(conn)
        assert (late.served, late.ended) == ([conn] * served, ended)
