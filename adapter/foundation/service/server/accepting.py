"""Accepts connections and performs their handshakes, and lets the addresses of the clients take turns.

Accepting is cheap and comes first, so that nobody waits in the kernel's queue, where a burst from one address would
delay everybody else. Handshakes are expensive and wait for their turn (`AddressTurns`).
"""

# gunicorn has no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import selectors
import ssl
import time
from typing import TYPE_CHECKING, Any

from adapter.foundation.service.server.addresses import NO_ROOM
from adapter.foundation.service.server.closing import ClosingWorker
from adapter.foundation.service.server.connections.connection import Connection
from adapter.foundation.service.server.connections.limited_work import ACCEPTING_SHARE, HANDSHAKES_SHARE, LimitedWork
from adapter.foundation.service.server.connections.stages import Stage
from adapter.foundation.service.server.shutdown_phases import Phase
from adapter.foundation.service.server.sockets import has_hung_up, prepare_accepted

if TYPE_CHECKING:
    import socket

TURN_SECONDS = 0.0005
"""Time after which only one more connection of each stage is advanced, so kept-alive connections never wait long."""
ACCEPTS_PER_TURN = 32
"""The most connections to accept in a turn; once the turn's time is up, only one is accepted. The others stay in the
kernel's queue, which all clients share: while it is full, a new client tries again after a second."""
HANDSHAKES_PER_TURN = 4
ACCEPT_PAUSE = 0.2
"""Seconds without accepting after file descriptors ran out and no connection could be closed."""


class AcceptingWorker(ClosingWorker):
    """Accepts connections, and advances their handshakes; see the module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - handed through to gunicorn
        super().__init__(*args, **kwargs)
        self._limits = self.app.options.connections
        self._tls = self.app.tls
        self._accept_again = 0.0
        self._accept_share = LimitedWork(lambda: self._threads.is_limited, ACCEPTING_SHARE)
        self._handshake_share = LimitedWork(lambda: self._threads.is_limited, HANDSHAKES_SHARE)

    def accept(self, listener: socket.socket) -> None:
        """Accept new connections, a limited number at once."""
        end = time.monotonic() + TURN_SECONDS
        for place in range(ACCEPTS_PER_TURN):
            if place and time.monotonic() >= end:
                return
            try:
                sock, client = listener.accept()
            except BlockingIOError:
                return
            except OSError as e:
                if e.errno in NO_ROOM and not self._make_room("no_file_descriptors"):
                    self._accept_again = time.monotonic() + ACCEPT_PAUSE
                return
            self._open(sock, client[:2], listener.getsockname()[:2])

    def _may_accept(self) -> bool:
        return (
            self._phase < Phase.DRAINING
            and self._in_request < self._limits.most
            and self._accept_again <= time.monotonic()
        )

    def _advance_newcomers(self, end: float) -> None:
        """Advance some handshakes, and at least one however long it takes. The addresses of the clients take turns."""
        for place in range(HANDSHAKES_PER_TURN):
            if self._handshake_share.pause_seconds() or (place and time.monotonic() >= end):
                return
            conn = self._waiting_connections.newcomers.first()
            if conn is None:
                return
            self._waiting_connections.newcomers.discard(conn)
            with self._handshake_share.count_time() as counted:
                self._advance(conn)
            self._waiting_connections.newcomers.charge(conn.address, counted.seconds)
            if conn.stage is Stage.HANDSHAKE and not conn.events:
                self._poll_for(conn, selectors.EVENT_READ)

    def _poll_for(self, conn: Connection, events: int) -> None:
        """Change the events that the poller waits for; drop the connection if the kernel refuses to watch it."""
        try:
            self._waiting_connections.poll(conn, events)
        except OSError as e:
            self._drop(conn, "not_pollable", e)

    def _shake_hands(self, conn: Connection) -> None:
        """Advance the handshake. The socket is wrapped at the client's first byte, to use the newest context."""
        if self._tls is not None and self._tls.is_spoken_on(conn.sock):
            if not isinstance(conn.sock, ssl.SSLSocket):
                if has_hung_up(conn.sock):
                    # The answer would take a millisecond, and nobody would read it.
                    raise EOFError
                self._waiting_connections.poll(conn, 0)
                conn.sock = self._tls.wrap(conn.sock)
                self._waiting_connections.poll(conn, selectors.EVENT_READ)
            conn.sock.do_handshake()
            self._tls.shaken(conn.sock)
            if conn.is_known:
                self._waiting_connections.familiar.note(conn.address)
        self._waiting_connections.put(conn, Stage.HEAD)

    def _open(self, sock: socket.socket, client: tuple[str, int], server: tuple[str, int]) -> None:
        full = len(self._waiting_connections) + self._in_request >= self._limits.most
        if full or self._waiting_connections.count_unfinished() >= self._limits.most_unfinished:
            self._make_room("crowded_out")
        prepare_accepted(sock)
        conn = Connection(sock, client, server, self._answers.most_bytes_each)
        try:
            self._waiting_connections.put(conn, Stage.HANDSHAKE)
        except OSError as e:
            self._drop(conn, "not_pollable", e)
