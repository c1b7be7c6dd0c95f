"""Ends connections, and the worker with them.

A connection whose client may still be reading is first shut down for writing: closing it with unread input would reset
it and lose the answer. If there are too many connections, the least useful one is closed.
"""

# gunicorn has no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import logging
import os
import selectors
import time
from abc import abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any

from adapter.foundation.service.server.answering import AnsweringWorker, final_answer
from adapter.foundation.service.server.connections.held_bytes import held_bodies
from adapter.foundation.service.server.connections.stages import Stage
from adapter.foundation.service.server.shutdown_phases import Ending, Phase
from adapter.foundation.service.server.sockets import reset_on_close, unacknowledged_bytes

if TYPE_CHECKING:
    from adapter.foundation.service.server.connections.connection import Connection
    from adapter.foundation.service.server.connections.waiting_connections import WaitingConnections

_log = logging.getLogger(__name__)

_RECEIVING = frozenset({Stage.HEAD, Stage.IDLE, Stage.BODY})
"""Stages in which a connection waits for bytes that cost little to read."""


class ClosingWorker(AnsweringWorker):
    """Closes connections, and goes through the phases of the shutdown; see the module."""

    _waiting_connections: WaitingConnections

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - handed through to gunicorn
        super().__init__(*args, **kwargs)
        options = self.app.options
        self._ending = Ending(delay_seconds=options.shutdown_delay_seconds, drain_seconds=options.drain_seconds)
        self._bodies = held_bodies(options.bodies)
        self._in_request = 0
        self.dropped: Counter[str] = Counter()
        """Number of dropped connections by reason."""

    @abstractmethod
    def _advance(self, conn: Connection) -> None:
        """Advance a connection as far as possible without waiting."""

    # Ends of connections

    def _make_room(self, reason: str) -> bool:
        """Close the least useful connection; return whether there was one."""
        if (conn := self._waiting_connections.least_missed()) is not None:
            self._cut_off(conn, reason)
        return conn is not None

    def _make_room_for_answers(self) -> None:
        while self._held.total > self._answers.most_bytes:
            if (slowest := self._waiting_connections.slowest_reader()) is None:
                return  # the bytes belong to answers that are about to return to this thread
            self._cut_off(slowest, "answers_crowded_out")

    def _expire(self, conn: Connection) -> None:
        """End a connection whose time is over, unless it has received what it was waiting for.

        While the process gets no processor time, or more connections are ready than a turn has room for, bytes that
        arrived in time wait to be read. Without a last look, their clients would be cut off without an answer.
        """
        if conn.stage is Stage.CLOSED or conn.expires > time.monotonic():
            # What was read from one that expired at the same time has crowded it out.
            return
        stage = conn.stage
        if stage in _RECEIVING:
            self._advance(conn)
        if conn.stage is stage:
            self._end_late(conn)

    def _end_late(self, conn: Connection) -> None:
        """End a connection that is too slow; a body or an answer that keeps its rate goes on."""
        if conn.stage is Stage.HEAD and conn.head:
            self._refuse(conn, 408, "Request Timeout", "head_timeout")
        elif conn.stage is Stage.BODY and conn.sends_body(self.app.options.bodies.least_rate, self._deadlines):
            self._waiting_connections.put(conn, Stage.BODY, conn.events)
        elif conn.stage is Stage.BODY:
            self._refuse(conn, 408, "Request Timeout", "body_timeout")
        elif conn.stage in {Stage.SEND, Stage.LINGER} and conn.reads_answer(self._answers.least_rate, self._deadlines):
            self._waiting_connections.put(conn, conn.stage, conn.events)
        elif conn.stage is Stage.SEND:
            self._cut_off(conn, "answer_unread")
        else:
            self._cut_off(conn, f"{conn.stage.name.lower()}_timeout")

    def _give_up(self, conn: Connection, error: OSError) -> None:
        """Close a failed connection in such a way that the client can read the alert with the reason."""
        if conn.stage is not Stage.HANDSHAKE:
            self._drop(conn, "connection_lost", error)
            return
        self.dropped["handshake_failed"] += 1
        _log.debug("handshake with %s failed: %s", conn.client[0], error)
        if getattr(error, "reason", "") == "HTTP_REQUEST":
            conn.send_plain(final_answer(400, "Bad Request", "an HTTP request was sent to an HTTPS port"))
        self._say_goodbye(conn)

    def _put(self, conn: Connection, stage: Stage, events: int = selectors.EVENT_READ) -> None:
        """Add a connection to a stage; drop it if the kernel refuses to watch it."""
        try:
            self._waiting_connections.put(conn, stage, events)
        except OSError as e:
            self._drop(conn, "not_pollable", e)

    def _drop(self, conn: Connection, reason: str = "", error: OSError | None = None) -> None:
        self._waiting_connections.take(conn)
        self._bodies.release(conn)
        self._held.release(conn.outbox)
        if reason:
            self.dropped[reason] += 1
            _log.debug("connection of %s dropped: %s %s", conn.client[0], reason, error or "")
        if conn.stage is Stage.IDLE:
            conn.shut_down()
        conn.close()

    def _cut_off(self, conn: Connection, reason: str) -> None:
        """Drop a connection, and let the kernel discard its unread bytes."""
        if unacknowledged_bytes(conn.sock):
            reset_on_close(conn.sock)
        self._drop(conn, reason)

    def _refuse(self, conn: Connection, status: int, phrase: str, reason: str) -> None:
        self.dropped[reason] += 1
        conn.send_last(final_answer(status, phrase, phrase.lower()))
        self._say_goodbye(conn)

    def _say_goodbye(self, conn: Connection) -> None:
        """Shut down for writing and keep reading for a moment; closing with unread input would lose the answer."""
        conn.shut_down()
        conn.forget_head()
        self._bodies.release(conn)
        conn.outbox.newly_read()
        if conn.is_open:
            self._put(conn, Stage.LINGER)
        else:
            self._drop(conn)

    # The end of the process

    def handle_exit(self, _sig: int, _frame: object) -> None:
        """SIGTERM: start the shutdown."""
        self._ending.begin(time.monotonic())
        self._wake()

    def handle_usr1(self, _sig: int, _frame: object) -> None:
        """SIGUSR1 from the arbiter: skip a phase of the shutdown, or start it without the delay."""
        self._ending.hurry(time.monotonic())
        self._wake()

    def _wake(self) -> None:
        self.method_queue.defer(lambda: None)

    def _is_drained(self) -> bool:
        return self._phase is Phase.DRAINING and not self._in_request and not len(self._waiting_connections)

    def _finish(self) -> None:
        for conn in self._waiting_connections.all():
            self._drop(conn)
        self._threads.shut_down()
        self.app.context.stop()
        if self._in_request:
            _log.warning("requests that did not finish in time and are abandoned: %d", self._in_request)
        if self._in_request or self.app.context.tasks.are_running():
            # Exit here, because the interpreter would wait for threads of requests, which are past every deadline, and
            # would take away modules that threads of tasks still use.
            logging.shutdown()
            os._exit(0)
