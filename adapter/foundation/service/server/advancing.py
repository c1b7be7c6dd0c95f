"""Advances a connection through its stages: reads heads and bodies, hands requests to the threads, and sends answers.

Each step does what is possible without waiting. Whatever goes wrong ends this connection alone.
"""

# gunicorn has no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import logging
import selectors
import ssl
from typing import TYPE_CHECKING

from adapter.foundation.service.server.accepting import AcceptingWorker
from adapter.foundation.service.server.connections.stages import Stage
from adapter.foundation.service.server.shutdown_phases import Phase

if TYPE_CHECKING:
    from concurrent.futures import Future

    from adapter.foundation.service.server.connections.connection import Connection

_log = logging.getLogger(__name__)


class AdvancingWorker(AcceptingWorker):
    """Advances connections that are ready; see the module."""

    def finish_request(self, conn: Connection, fs: Future[bool]) -> None:
        """Take a connection back from a request thread."""
        self._in_request -= 1
        self._threads.release_thread(conn)
        self._bodies.release(conn)
        conn.is_kept = not (fs.cancelled() or fs.exception()) and fs.result()
        if conn.fault:
            self.dropped[conn.fault] += 1
        if conn.outbox.bodies:
            conn.outbox.newly_read()  # The required rate applies to what is read from now on.
            self._put(conn, Stage.SEND, selectors.EVENT_WRITE)
            self._make_room_for_answers()
        else:
            self._continue_connection(conn)

    def _advance(self, conn: Connection) -> None:
        try:
            self._step(conn)
        except ssl.SSLWantReadError:
            self._poll_for(conn, selectors.EVENT_READ)
        except ssl.SSLWantWriteError:
            self._poll_for(conn, selectors.EVENT_WRITE)
        except BlockingIOError:
            pass
        except EOFError:
            self._drop(conn)
        except OSError as e:
            self._give_up(conn, e)
        except Exception:  # noqa: BLE001 - the loop of all connections: whatever one of them causes ends that one alone
            _log.exception("a connection failed unexpectedly")
            self._drop(conn, "unforeseen")

    def _step(self, conn: Connection) -> None:
        if conn.stage is Stage.HANDSHAKE:
            self._shake_hands(conn)
        if conn.stage in {Stage.HEAD, Stage.IDLE}:
            self._read(conn)
        elif conn.stage is Stage.BODY:
            self._receive(conn)
        elif conn.stage is Stage.SEND:
            self._send(conn)
        elif conn.stage is Stage.LINGER and not conn.discard():
            self._drop(conn)

    def _read(self, conn: Connection) -> None:
        if conn.head_is_whole() or conn.read_head():
            self._submit_unless_busy(conn)
            return
        if conn.head_is_too_large:
            self._refuse(conn, 431, "Request Header Fields Too Large", "head_too_large")
            return
        if conn.stage is Stage.IDLE:
            self._waiting_connections.put(conn, Stage.HEAD)
        heads = self._waiting_connections.heads.of(conn)
        heads.note(conn)
        while (largest := heads.one_too_many()) is not None:
            self._refuse(largest, 431, "Request Header Fields Too Large", "heads_crowded_out")

    def _send(self, conn: Connection) -> None:
        """Send a portion of the unsent answer; the next request is read only after the last portion."""
        if conn.outbox.step():
            self._held.release(conn.outbox)
            self._continue_connection(conn)
        else:
            self._waiting_connections.poll(conn, selectors.EVENT_WRITE)

    def _continue_connection(self, conn: Connection) -> None:
        """Continue with the next request of a connection whose answer has been passed to the kernel."""
        if not conn.is_kept or self._phase >= Phase.DRAINING:
            self._say_goodbye(conn)
            return
        conn.end_request()
        conn.steps = 0
        if conn.next_is_sent():
            self._submit_unless_busy(conn)
        else:
            self._put(conn, Stage.HEAD if conn.head else Stage.IDLE)

    def _receive(self, conn: Connection) -> None:
        """Receive a portion of a body, and drop the largest body if all of them together take too much memory."""
        try:
            is_whole = conn.read_body()
        finally:
            self._bodies.note(conn)
            while (largest := self._bodies.one_too_many(self._waiting_connections.all(Stage.BODY))) is not None:
                self._refuse(largest, 503, "Service Unavailable", "bodies_crowded_out")
        if is_whole and conn.stage is Stage.BODY:
            self._submit(conn)

    def _submit_unless_busy(self, conn: Connection) -> None:
        context = self.app.context
        conn.judge_head(context.admit_head)
        if context.plan_body is not None and conn.expect_body(context.plan_body):
            self._waiting_connections.put(conn, Stage.BODY)
            self._advance(conn)
        elif 0 < self._limits.most_requests <= self._in_request and not conn.asks_for_health:
            self._refuse(conn, 429, "Too Many Requests", "too_many_requests")
        else:
            self._submit(conn)

    def _submit(self, conn: Connection) -> None:
        self._waiting_connections.take(conn)
        conn.stage = Stage.REQUEST
        self._in_request += 1
        self.enqueue_req(conn)
